#include "collectives/testing/conformance.h"

#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/testing/status_matchers.h"
#include "collectives/host/backend.h"
#include "gtest/gtest.h"
#include "store/hash/store.h"

namespace hawser::collectives {
namespace {

std::vector<std::unique_ptr<Backend>> MakeHostBackends(int size) {
  store::HashStore store;
  std::vector<std::unique_ptr<Backend>> backends(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      absl::StatusOr<std::unique_ptr<Backend>> backend =
          MakeHostBackend(store, rank, size, absl::Seconds(60));
      ASSERT_THAT(backend, async::IsOk());
      backends[static_cast<size_t>(rank)] = *std::move(backend);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return backends;
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Host, ConformanceTest,
                         testing::ValuesIn(ConformanceParams(MakeHostBackends)),
                         ConformanceName);

}  // namespace hawser::collectives
