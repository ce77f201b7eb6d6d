// One rank of a measurement of all-reduce beside direct calls of NCCL. Rank 0
// prints a JSON object for each size, with the bus bandwidth of both.
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "async/check.h"
#include "collectives/make_group.h"
#include "collectives/process_group.h"
#include "tensor/device.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"
#include "tests/gpu/rank_process.h"

namespace hawser::tests {
namespace {

// From this size on, the group must reach this part of NCCL's bandwidth.
constexpr int64_t kLargeBytes = int64_t{1} << 20;
constexpr double kWantedRatio = 0.95;
constexpr int kRounds = 21;

void CheckNccl(ncclResult_t result) {
  HAWSER_CHECK(result == ncclSuccess) << ncclGetErrorString(result);
}
void CheckCuda(cudaError_t error) {
  HAWSER_CHECK(error == cudaSuccess) << cudaGetErrorString(error);
}

// NCCL as a program calls it by itself.
class DirectNccl {
 public:
  explicit DirectNccl(collectives::ProcessGroup& group) {
    ncclUniqueId id = {};
    if (group.rank() == 0) CheckNccl(ncclGetUniqueId(&id));
    Tensor bytes =
        Tensor::Zeros({sizeof(id.internal)}, {.dtype = tensor::DType::kU8});
    std::memcpy(bytes.raw_data(), id.internal, sizeof(id.internal));
    HAWSER_CHECK(group.Broadcast(bytes, 0).ok());
    std::memcpy(id.internal, bytes.raw_data(), sizeof(id.internal));
    CheckNccl(ncclCommInitRank(&communicator_, group.size(), id, group.rank()));
    CheckCuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  }
  ~DirectNccl() {
    ncclCommDestroy(communicator_);
    cudaStreamDestroy(stream_);
  }
  DirectNccl(const DirectNccl&) = delete;
  DirectNccl& operator=(const DirectNccl&) = delete;

  void AllReduce(Tensor& tensor) {
    CheckNccl(ncclAllReduce(tensor.raw_data(), tensor.raw_data(),
                            static_cast<size_t>(tensor.num_elements()),
                            ncclFloat32, ncclSum, communicator_, stream_));
    CheckCuda(cudaStreamSynchronize(stream_));
  }

 private:
  ncclComm_t communicator_ = nullptr;
  cudaStream_t stream_ = nullptr;
};

double Seconds(const std::function<void()>& run) {
  const auto begin = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
      .count();
}

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2,
                   values.end());
  return values[values.size() / 2];
}

// Returns whether the size reaches what is wanted.
bool Measure(collectives::ProcessGroup& group, DirectNccl& direct,
             int64_t bytes) {
  Tensor tensor = *Tensor::Zeros({bytes / 4}).To(tensor::Cuda());
  std::vector<double> ours;
  std::vector<double> theirs;
  // One round to warm up, and then one after the other.
  for (int round = 0; round <= kRounds; ++round) {
    HAWSER_CHECK(group.Barrier().ok());
    const double their = Seconds([&] { direct.AllReduce(tensor); });
    HAWSER_CHECK(group.Barrier().ok());
    const double our =
        Seconds([&] { HAWSER_CHECK(group.AllReduce(tensor).ok()); });
    if (round == 0) continue;
    ours.push_back(our);
    theirs.push_back(their);
  }
  const double moved = 2.0 * (group.size() - 1) / group.size() *
                       static_cast<double>(bytes) / 1e9;
  const double ratio = Median(theirs) / Median(ours);
  if (group.rank() == 0) {
    std::printf(
        "{\"bench\":\"nccl_all_reduce\",\"case\":\"%d ranks %lld bytes\","
        "\"unit\":\"GB/s\",\"value\":%.3f,\"peer\":\"NCCL\","
        "\"peer_value\":%.3f,\"ratio\":%.3f}\n",
        group.size(), static_cast<long long>(bytes), moved / Median(ours),
        moved / Median(theirs), ratio);
    std::fflush(stdout);
  }
  return bytes < kLargeBytes || ratio >= kWantedRatio;
}

int Run() {
  if (!HasGpu()) {
    std::printf("SKIPPED: all-reduce bandwidth: a GPU is not available\n");
    return 0;
  }
  const RankProcess self = GetRankProcess();
  const auto store = OpenNextStore();
  const auto group = collectives::MakeProcessGroup(
      *store, {.rank = self.rank, .size = self.size, .backend = "nccl"});
  HAWSER_CHECK(group.ok()) << group.status();
  DirectNccl direct(**group);
  bool reached = true;
  for (int64_t bytes = 4096; bytes <= int64_t{256} << 20; bytes *= 4) {
    reached = Measure(**group, direct, bytes) && reached;
  }
  if (self.rank != 0 || reached) return 0;
  std::fprintf(stderr,
               "all-reduce: less than %.2f of NCCL's bandwidth for a size of "
               "at least %lld bytes\n",
               kWantedRatio, static_cast<long long>(kLargeBytes));
  return 1;
}

}  // namespace
}  // namespace hawser::tests

int main() { return hawser::tests::Run(); }
