// One rank of the conformance suite over NCCL.
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "async/testing/status_matchers.h"
#include "collectives/host/backend.h"
#include "collectives/loopback/backend.h"
#include "collectives/nccl/backend.h"
#include "collectives/nccl/system_library.h"
#include "collectives/testing/conformance.h"
#include "gtest/gtest.h"
#include "store/prefix_store.h"
#include "tensor/device.h"
#include "tests/gpu/device_memory_backend.h"
#include "tests/gpu/rank_process.h"

namespace hawser::collectives {
namespace {

std::unique_ptr<Backend> MakeControl(store::Store& store, int rank, int size) {
  if (size == 1) return std::move(MakeLoopbackBackends(1)[0]);
  store::PrefixStore keys("control", std::shared_ptr<store::Store>(
                                         std::shared_ptr<void>(), &store));
  auto control = MakeHostBackend(keys, rank, size, absl::Seconds(60));
  EXPECT_THAT(control, async::IsOk());
  return *std::move(control);
}

std::vector<std::unique_ptr<Backend>> MakeNcclBackends(int size) {
  if (!tests::HasGpu()) return {};
  const tests::RankProcess self = tests::GetRankProcess();
  EXPECT_EQ(self.size, size);
  const auto store = tests::OpenNextStore();
  auto backend = MakeNcclBackend(*store, self.rank, size, absl::Seconds(60),
                                 MakeSystemNcclLibrary(0),
                                 MakeControl(*store, self.rank, size));
  EXPECT_THAT(backend, async::IsOk());
  std::vector<std::unique_ptr<Backend>> backends(static_cast<size_t>(size));
  backends[static_cast<size_t>(self.rank)] =
      tests::MakeDeviceMemoryBackend(*std::move(backend), tensor::Cuda());
  return backends;
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Nccl, ConformanceTest,
                         testing::Values(ConformanceParam{
                             .make = MakeNcclBackends,
                             .size = tests::GetRankProcess().size,
                             .traits = {.has_bitwise_ops = false,
                                        .rounds_averages_once = false,
                                        .keeps_nan = false}}),
                         ConformanceName);

}  // namespace hawser::collectives
