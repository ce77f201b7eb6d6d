#include "collectives/testing/run_ranks.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace hawser::collectives {

void RunRanks(const MakeBackends& make, int size,
              const std::function<void(ProcessGroup&)>& body,
              const ProcessGroupOptions& options) {
  std::vector<std::unique_ptr<Backend>> backends = make(size);
  if (backends.empty()) {
    GTEST_SKIP() << "this machine lacks what the backend needs";
  }
  ASSERT_EQ(backends.size(), static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    auto& backend = backends[static_cast<size_t>(rank)];
    if (backend == nullptr) continue;
    threads.emplace_back([&body, &options, &backend, rank, size] {
      ProcessGroup group(std::move(backend), rank, size, options);
      body(group);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace hawser::collectives
