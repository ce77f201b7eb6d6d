// The conformance suite over the whole backend, with a fake of NCCL.
#include "collectives/testing/conformance.h"

#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "collectives/loopback/backend.h"
#include "collectives/nccl/backend.h"
#include "collectives/nccl/testing/fake_library.h"
#include "gtest/gtest.h"
#include "store/hash/store.h"

namespace hawser::collectives {
namespace {

std::vector<std::unique_ptr<Backend>> MakeNcclBackends(int size) {
  store::HashStore store;
  const auto machine = std::make_shared<FakeNcclMachine>();
  std::vector<std::unique_ptr<Backend>> controls = MakeLoopbackBackends(size);
  std::vector<std::unique_ptr<Backend>> backends(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      const auto index = static_cast<size_t>(rank);
      auto backend = MakeNcclBackend(store, rank, size, absl::Seconds(60),
                                     machine->MakeLibrary(rank),
                                     std::move(controls[index]));
      ASSERT_TRUE(backend.ok()) << backend.status();
      backends[index] = *std::move(backend);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return backends;
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Nccl, ConformanceTest,
                         testing::ValuesIn(ConformanceParams(
                             MakeNcclBackends, {.has_bitwise_ops = false})),
                         ConformanceName);

}  // namespace hawser::collectives
