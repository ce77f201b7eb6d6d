// NCCL over the CUDA runtime.
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "collectives/nccl/library.h"
#include "collectives/nccl/system_library.h"
#include "tensor/backend/cuda/cuda_status.h"
#include "tensor/device.h"
#include "tensor/dtype.h"

namespace hawser::collectives {
namespace {

using tensor::cuda::CudaStatus;
using tensor::cuda::DeviceGuard;

static_assert(sizeof(NcclId) == NCCL_UNIQUE_ID_BYTES);
static_assert(NCCL_VERSION_CODE >= NCCL_VERSION(2, 17, 1),
              "the fields of NcclConfig need NCCL 2.17.1");

// The border at which results of NCCL become statuses. OK also while a call is
// in progress.
absl::Status NcclStatus(ncclResult_t result, const char* function,
                        ncclComm_t communicator) {
  if (result == ncclSuccess || result == ncclInProgress) [[likely]]
    return absl::OkStatus();
  const char* const last = ncclGetLastError(communicator);
  std::string message =
      absl::StrCat(function, ": ", ncclGetErrorString(result));
  if (last != nullptr && *last != '\0') {
    absl::StrAppend(&message, ": ", last);
  }
  switch (result) {
    case ncclInvalidArgument:
    case ncclInvalidUsage:
      return absl::InvalidArgumentError(message);
    case ncclRemoteError:
    case ncclSystemError:
      return absl::UnavailableError(message);
    default:
      return absl::InternalError(message);
  }
}

ncclDataType_t TypeOf(tensor::DType dtype) {
  switch (dtype) {
    case tensor::DType::kF32:
      return ncclFloat32;
    case tensor::DType::kF64:
      return ncclFloat64;
    case tensor::DType::kF16:
      return ncclFloat16;
    case tensor::DType::kBF16:
      return ncclBfloat16;
    case tensor::DType::kI64:
      return ncclInt64;
    case tensor::DType::kI32:
      return ncclInt32;
    case tensor::DType::kU8:
    case tensor::DType::kBool:
      return ncclUint8;
  }
  std::abort();
}

ncclRedOp_t OpOf(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return ncclSum;
    case ReduceOp::kAverage:
      return ncclAvg;
    case ReduceOp::kProduct:
      return ncclProd;
    case ReduceOp::kMin:
      return ncclMin;
    case ReduceOp::kMax:
      return ncclMax;
    case ReduceOp::kBitAnd:
    case ReduceOp::kBitOr:
    case ReduceOp::kBitXor:
      break;  // CheckNcclReduction refuses them.
  }
  std::abort();
}

class CudaEvent final : public Backend::Mark {
 public:
  static absl::StatusOr<std::shared_ptr<CudaEvent>> Create() {
    cudaEvent_t event = nullptr;
    RETURN_IF_ERROR(
        CudaStatus(cudaEventCreateWithFlags(&event, cudaEventDisableTiming),
                   "cudaEventCreateWithFlags"));
    return std::shared_ptr<CudaEvent>(new CudaEvent(event));
  }
  ~CudaEvent() override { cudaEventDestroy(event_); }

  cudaEvent_t event() const { return event_; }

 private:
  explicit CudaEvent(cudaEvent_t event) : event_(event) {}
  const cudaEvent_t event_;
};

class CudaNcclCommunicator final : public NcclCommunicator {
 public:
  // Takes over the communicator and the stream.
  CudaNcclCommunicator(tensor::Device device, ncclComm_t communicator,
                       cudaStream_t stream, std::shared_ptr<CudaEvent> end)
      : device_(device),
        communicator_(communicator),
        stream_(stream),
        end_(std::move(end)) {}
  ~CudaNcclCommunicator() override {
    const DeviceGuard guard(device_);
    cudaStreamDestroy(stream_);
  }

  absl::Status AllReduce(const std::byte* input, std::byte* output,
                         size_t count, const Reduction& reduction) override {
    return Check(ncclAllReduce(input, output, count, TypeOf(reduction.dtype),
                               OpOf(reduction.op), communicator_, stream_),
                 "ncclAllReduce");
  }
  absl::Status Reduce(const std::byte* input, std::byte* output, size_t count,
                      const Reduction& reduction, int root) override {
    return Check(ncclReduce(input, output, count, TypeOf(reduction.dtype),
                            OpOf(reduction.op), root, communicator_, stream_),
                 "ncclReduce");
  }
  absl::Status ReduceScatter(const std::byte* input, std::byte* output,
                             size_t count,
                             const Reduction& reduction) override {
    return Check(
        ncclReduceScatter(input, output, count, TypeOf(reduction.dtype),
                          OpOf(reduction.op), communicator_, stream_),
        "ncclReduceScatter");
  }
  absl::Status Broadcast(const std::byte* input, std::byte* output,
                         size_t bytes, int root) override {
    return Check(ncclBroadcast(input, output, bytes, ncclUint8, root,
                               communicator_, stream_),
                 "ncclBroadcast");
  }
  absl::Status AllGather(const std::byte* input, std::byte* output,
                         size_t bytes) override {
    return Check(
        ncclAllGather(input, output, bytes, ncclUint8, communicator_, stream_),
        "ncclAllGather");
  }
  absl::Status Send(const std::byte* data, size_t bytes, int peer) override {
    return Check(ncclSend(data, bytes, ncclUint8, peer, communicator_, stream_),
                 "ncclSend");
  }
  absl::Status Recv(std::byte* data, size_t bytes, int peer) override {
    return Check(ncclRecv(data, bytes, ncclUint8, peer, communicator_, stream_),
                 "ncclRecv");
  }
  absl::Status GroupStart() override {
    return Check(ncclGroupStart(), "ncclGroupStart");
  }
  absl::Status GroupEnd() override {
    return Check(ncclGroupEnd(), "ncclGroupEnd");
  }

  absl::Status Copy(const std::byte* from, std::byte* to,
                    size_t bytes) override {
    const DeviceGuard guard(device_);
    return CudaStatus(
        cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_),
        "cudaMemcpyAsync");
  }
  absl::Status WaitFor(const Backend::Mark& mark) override {
    const DeviceGuard guard(device_);
    return CudaStatus(
        cudaStreamWaitEvent(stream_,
                            static_cast<const CudaEvent&>(mark).event(), 0),
        "cudaStreamWaitEvent");
  }
  absl::Status RecordEnd() override {
    const DeviceGuard guard(device_);
    return CudaStatus(cudaEventRecord(end_->event(), stream_),
                      "cudaEventRecord");
  }
  absl::StatusOr<bool> HasEnded() override {
    const cudaError_t error = cudaEventQuery(end_->event());
    if (error == cudaErrorNotReady) return false;
    RETURN_IF_ERROR(CudaStatus(error, "cudaEventQuery"));
    return true;
  }
  absl::StatusOr<bool> GetAsyncError() override {
    ncclResult_t result = ncclSuccess;
    RETURN_IF_ERROR(Check(ncclCommGetAsyncError(communicator_, &result),
                          "ncclCommGetAsyncError"));
    RETURN_IF_ERROR(Check(result, "NCCL"));
    return result != ncclInProgress;
  }

  absl::Status Finalize() override {
    return Check(ncclCommFinalize(communicator_), "ncclCommFinalize");
  }
  void Destroy() override { ncclCommDestroy(communicator_); }
  void Abort() override { ncclCommAbort(communicator_); }

 private:
  absl::Status Check(ncclResult_t result, const char* function) const {
    return NcclStatus(result, function, communicator_);
  }

  const tensor::Device device_;
  const ncclComm_t communicator_;
  const cudaStream_t stream_;
  const std::shared_ptr<CudaEvent> end_;
};

class CudaNcclLibrary final : public NcclLibrary {
 public:
  explicit CudaNcclLibrary(tensor::Device device) : device_(device) {}

  tensor::Device device() const override { return device_; }

  absl::StatusOr<NcclId> GetUniqueId() override {
    ncclUniqueId unique;
    RETURN_IF_ERROR(
        NcclStatus(ncclGetUniqueId(&unique), "ncclGetUniqueId", nullptr));
    NcclId id;
    std::memcpy(id.data(), unique.internal, id.size());
    return id;
  }

  absl::StatusOr<std::unique_ptr<NcclCommunicator>> CommInitRank(
      const NcclId& id, int rank, int size, const NcclConfig& config) override {
    const DeviceGuard guard(device_);
    ASSIGN_OR_RETURN(std::shared_ptr<CudaEvent> end, CudaEvent::Create());
    // Does not wait for the default stream, nor that for it.
    cudaStream_t stream = nullptr;
    RETURN_IF_ERROR(
        CudaStatus(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
                   "cudaStreamCreateWithFlags"));
    ncclConfig_t fields = NCCL_CONFIG_INITIALIZER;
    fields.blocking = config.blocking ? 1 : 0;
    if (config.min_ctas.has_value()) fields.minCTAs = *config.min_ctas;
    if (config.max_ctas.has_value()) fields.maxCTAs = *config.max_ctas;
    if (config.cga_cluster_size.has_value()) {
      fields.cgaClusterSize = *config.cga_cluster_size;
    }
    if (!config.net_name.empty()) fields.netName = config.net_name.c_str();
    ncclUniqueId unique;
    std::memcpy(unique.internal, id.data(), id.size());
    ncclComm_t communicator = nullptr;
    absl::Status status = NcclStatus(
        ncclCommInitRankConfig(&communicator, size, unique, rank, &fields),
        "ncclCommInitRankConfig", nullptr);
    if (!status.ok()) {
      if (communicator != nullptr) ncclCommAbort(communicator);
      cudaStreamDestroy(stream);
      return status;
    }
    return std::make_unique<CudaNcclCommunicator>(device_, communicator, stream,
                                                  std::move(end));
  }

  absl::StatusOr<std::shared_ptr<const Backend::Mark>> Mark() override {
    const DeviceGuard guard(device_);
    ASSIGN_OR_RETURN(std::shared_ptr<CudaEvent> event, CudaEvent::Create());
    RETURN_IF_ERROR(
        CudaStatus(cudaEventRecord(event->event(), tensor::cuda::kStream),
                   "cudaEventRecord"));
    return event;
  }

 private:
  const tensor::Device device_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<NcclLibrary>> MakeSystemNcclLibrary(int device) {
  int num_devices = 0;
  RETURN_IF_ERROR(
      CudaStatus(cudaGetDeviceCount(&num_devices), "cudaGetDeviceCount"));
  if (device < 0 || device >= num_devices) {
    return absl::FailedPreconditionError(
        absl::StrCat("there is no GPU ", device, ": this machine has ",
                     num_devices, ", from 0"));
  }
  return std::make_unique<CudaNcclLibrary>(tensor::Cuda(device));
}

}  // namespace hawser::collectives
