// The functions of NCCL that the backend uses.

#ifndef HAWSER_COLLECTIVES_NCCL_LIBRARY_H_
#define HAWSER_COLLECTIVES_NCCL_LIBRARY_H_

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "collectives/backend.h"
#include "collectives/reduce_op.h"
#include "tensor/device.h"

namespace hawser::collectives {

// Fields of ncclConfig_t. NCCL chooses those that are not set.
struct NcclConfig {
  // Calls of NCCL return only once the communicator is connected or the
  // operation is enqueued. Errors of other ranks and timeouts cannot end such a
  // call.
  bool blocking = false;
  // Bounds of the thread blocks that a collective uses: more are faster, and
  // leave less of the GPU to other kernels.
  std::optional<int> min_ctas = std::nullopt;
  std::optional<int> max_ctas = std::nullopt;
  // Thread blocks in a cluster, from GPUs of compute capability 9.0 on.
  std::optional<int> cga_cluster_size = std::nullopt;
  // The network plugin: "Socket", "IB".
  std::string net_name = "";
};

// Identifies a communicator that is being made. Plain bytes, to be sent.
using NcclId = std::array<char, 128>;

// A communicator and its stream. The methods up to HasEnded are those of NCCL
// and of the CUDA runtime of these names, and enqueue on the stream: OK means
// enqueued or in progress (see GetAsyncError), not finished. Memory is that of
// the device. For one thread at a time.
class NcclCommunicator {
 public:
  // Must have been destroyed or aborted before.
  virtual ~NcclCommunicator() = default;
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  // `count` elements of the dtype of the reduction.
  virtual absl::Status AllReduce(const std::byte* input, std::byte* output,
                                 size_t count, const Reduction& reduction) = 0;
  virtual absl::Status Reduce(const std::byte* input, std::byte* output,
                              size_t count, const Reduction& reduction,
                              int root) = 0;
  virtual absl::Status ReduceScatter(const std::byte* input, std::byte* output,
                                     size_t count,
                                     const Reduction& reduction) = 0;
  virtual absl::Status Broadcast(const std::byte* input, std::byte* output,
                                 size_t bytes, int root) = 0;
  virtual absl::Status AllGather(const std::byte* input, std::byte* output,
                                 size_t bytes) = 0;
  virtual absl::Status Send(const std::byte* data, size_t bytes, int peer) = 0;
  virtual absl::Status Recv(std::byte* data, size_t bytes, int peer) = 0;
  // Calls between the two run as one.
  virtual absl::Status GroupStart() = 0;
  virtual absl::Status GroupEnd() = 0;

  // cudaMemcpyAsync on the device.
  virtual absl::Status Copy(const std::byte* from, std::byte* to,
                            size_t bytes) = 0;
  // cudaStreamWaitEvent: the stream goes on once the device has done the work
  // before the mark.
  virtual absl::Status WaitFor(const Backend::Mark& mark) = 0;
  // cudaEventRecord after all that was enqueued on the stream, and
  // cudaEventQuery: whether the device has done it.
  virtual absl::Status RecordEnd() = 0;
  virtual absl::StatusOr<bool> HasEnded() = 0;

  // True once the last call is no longer in progress. Errors: that of the last
  // call, or of the network or another rank since.
  virtual absl::StatusOr<bool> GetAsyncError() = 0;

  // Begins to end the communicator: see GetAsyncError.
  virtual absl::Status Finalize() = 0;
  // Releases it. After Finalize has ended.
  virtual void Destroy() = 0;
  // Ends all that is under way, also on the device, and releases it.
  virtual void Abort() = 0;

 protected:
  NcclCommunicator() = default;
};

// NCCL on one device. Thread-safe.
//
// Errors of NCCL and CUDA:
//   kInvalidArgument     ncclInvalidArgument, ncclInvalidUsage.
//   kUnavailable         ncclRemoteError, ncclSystemError: a rank or the
//                        network has failed.
//   kResourceExhausted   the device is out of memory.
//   kFailedPrecondition  the device or the driver is missing.
//   kInternal            others.
// The text has the function, NCCL's name of the error and its last message.
class NcclLibrary {
 public:
  virtual ~NcclLibrary() = default;
  NcclLibrary(const NcclLibrary&) = delete;
  NcclLibrary& operator=(const NcclLibrary&) = delete;

  // The device whose memory communicators use.
  virtual tensor::Device device() const = 0;
  virtual absl::StatusOr<NcclId> GetUniqueId() = 0;
  // ncclCommInitRankConfig. All ranks have the same id. The communicator is
  // made in the background unless `config.blocking`: see GetAsyncError.
  virtual absl::StatusOr<std::unique_ptr<NcclCommunicator>> CommInitRank(
      const NcclId& id, int rank, int size, const NcclConfig& config) = 0;
  // cudaEventRecord after the work of the device that tensors use.
  virtual absl::StatusOr<std::shared_ptr<const Backend::Mark>> Mark() = 0;

 protected:
  NcclLibrary() = default;
};

}  // namespace hawser::collectives

#endif  // HAWSER_COLLECTIVES_NCCL_LIBRARY_H_
