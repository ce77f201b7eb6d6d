#include "async/serial_queue.h"

#include <cstddef>
#include <memory>
#include <numeric>
#include <optional>
#include <thread>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "async/executor.h"
#include "async/task_local.h"
#include "async/testing/manual_executor.h"
#include "async/thread_pool.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::async {
namespace {

TEST(SerialQueueTest, KeepsOrderOnManyThreads) {
  ThreadPool pool({.num_threads = 4});
  std::vector<int> order;
  {
    SerialQueue queue(&pool);
    for (int i = 0; i < 2000; ++i) {
      queue.Post([&order, i] { order.push_back(i); });
    }
  }
  pool.Shutdown();
  std::vector<int> expected(2000);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(order, expected);
}

TEST(SerialQueueTest, ClosuresOfManyThreadsExcludeEachOther) {
  ThreadPool pool({.num_threads = 4});
  SerialQueue queue(&pool);
  int count = 0;
  std::vector<std::thread> posters;
  for (int t = 0; t < 4; ++t) {
    posters.emplace_back([&] {
      for (int i = 0; i < 500; ++i) queue.Post([&count] { ++count; });
    });
  }
  for (std::thread& poster : posters) poster.join();
  pool.Shutdown();
  EXPECT_EQ(count, 2000);
}

TEST(SerialQueueTest, PostFromAClosureRunsAfterIt) {
  ManualExecutor executor;
  SerialQueue queue(&executor);
  std::vector<int> order;
  queue.Post([&] {
    queue.Post([&] { order.push_back(2); });
    order.push_back(1);
  });
  executor.RunAll();
  EXPECT_THAT(order, testing::ElementsAre(1, 2));
}

// A second turn would run beside the closure that posts.
TEST(SerialQueueTest, PostFromAClosureTakesNoOtherTurn) {
  ManualExecutor executor;
  SerialQueue queue(&executor);
  size_t turns = 1;
  queue.Post([&] {
    queue.Post([] {});
    turns = executor.num_queued();
  });
  EXPECT_TRUE(executor.RunOne());
  EXPECT_EQ(turns, 0);
}

TEST(SerialQueueTest, LongQueuesYieldTheExecutor) {
  ManualExecutor executor;
  SerialQueue queue(&executor);
  int ran = 0;
  for (int i = 0; i < 100; ++i) queue.Post([&] { ++ran; });
  int ran_before_other = -1;
  executor.RunOne();
  executor.Post([&] { ran_before_other = ran; });
  executor.RunAll();
  EXPECT_EQ(ran, 100);
  EXPECT_LT(ran_before_other, 100);
}

// Destroys all closures.
class DroppingExecutor final : public Executor {
 public:
  void Post(absl::AnyInvocable<void() &&>) override {}
};

// Also after one was dropped.
TEST(SerialQueueTest, EachClosureOfADroppingExecutorIsDestroyed) {
  auto guard = std::make_shared<int>();
  DroppingExecutor executor;
  SerialQueue queue(&executor);
  for (int i = 0; i < 3; ++i) {
    queue.Post([guard] {});
    EXPECT_EQ(guard.use_count(), 1);
  }
}

TEST(SerialQueueTest, ClosuresAreDestroyedWhenTheExecutorDropsThem) {
  auto guard = std::make_shared<int>();
  std::optional<ManualExecutor> executor(std::in_place);
  SerialQueue queue(&*executor);
  for (int i = 0; i < 3; ++i) queue.Post([guard] {});
  EXPECT_EQ(guard.use_count(), 4);
  executor.reset();
  EXPECT_EQ(guard.use_count(), 1);
}

TEST(SerialQueueTest, EachClosureHasItsPostersContext) {
  ManualExecutor executor;
  SerialQueue queue(&executor);
  TaskLocal<int> number;
  std::vector<int> seen;
  for (int i = 0; i < 2; ++i) {
    TaskLocal<int>::Scope scope(number, i);
    queue.Post([&] { seen.push_back(*number.get()); });
  }
  executor.RunAll();
  EXPECT_THAT(seen, testing::ElementsAre(0, 1));
}

}  // namespace
}  // namespace hawser::async
