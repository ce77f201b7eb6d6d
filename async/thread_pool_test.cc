#include "async/thread_pool.h"

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "async/future.h"
#include "async/join.h"
#include "async/task_local.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::async {
namespace {

// Runs `closure()` on `pool` and returns its future.
template <class F>
auto RunOn(Executor& pool, F closure) {
  return MakeReadyFuture<void>(absl::OkStatus())
      .Then(&pool, [closure](absl::Status) { return closure(); });
}

// Closures that wait for each other, `depth` of them; returns `depth`.
int Nested(ThreadPool& pool, int depth) {
  if (depth == 0) return 0;
  return 1 + *RunOn(pool, [&pool, depth] {
                return Nested(pool, depth - 1);
              }).Wait();
}

TEST(ThreadPoolTest, RunsPostedClosures) {
  ThreadPool pool({.num_threads = 3});
  std::vector<Future<int>> futures;
  for (int i = 0; i < 1000; ++i) {
    futures.push_back(RunOn(pool, [i] { return i; }));
  }
  int sum = 0;
  const absl::StatusOr<std::vector<int>> values =
      JoinAll(std::move(futures)).Wait();
  ASSERT_THAT(values, IsOk());
  for (int value : *values) sum += value;
  EXPECT_EQ(sum, 499500);
}

TEST(ThreadPoolTest, NeverRunsMoreThanItsTargetAtOnce) {
  ThreadPool pool({.num_threads = 2});
  std::atomic<int> running = 0;
  std::atomic<int> most = 0;
  for (int i = 0; i < 500; ++i) {
    pool.Post([&] {
      const int now = ++running;
      int seen = most;
      while (now > seen && !most.compare_exchange_weak(seen, now)) {
      }
      std::this_thread::yield();
      --running;
    });
  }
  pool.Shutdown();
  EXPECT_LE(most, 2);
}

TEST(ThreadPoolTest, NestedWaitsOfDepth50OnTwoThreadsFinish) {
  ThreadPool pool({.num_threads = 2});
  EXPECT_EQ(Nested(pool, 50), 50);
}

// Nests until only the reserved threads are left; returns the depth.
int NestedUntilExhausted(ThreadPool& pool) {
  if (ThreadPool::IsNearlyExhausted()) return 0;
  return 1 +
         *RunOn(pool, [&pool] { return NestedUntilExhausted(pool); }).Wait();
}

TEST(ThreadPoolTest, LastThreadsReportExhaustion) {
  ThreadPool pool({.num_threads = 2, .max_threads = 20});
  EXPECT_FALSE(ThreadPool::IsNearlyExhausted());
  // The caller's own wait does not block a pool thread. The thread that posted
  // the last closure may be about to block and is not counted yet.
  EXPECT_THAT(NestedUntilExhausted(pool), testing::AnyOf(1 + 18, 1 + 18 + 1));
  EXPECT_THAT(
      RunOn(pool, [] { return ThreadPool::IsNearlyExhausted() ? 1 : 0; })
          .Wait(),
      IsOkAndHolds(0));
}

TEST(ThreadPoolTest, ManyNestedWaitsAtOnceFinish) {
  ThreadPool pool({.num_threads = 2});
  std::vector<Future<int>> futures;
  for (int i = 0; i < 8; ++i) {
    futures.push_back(RunOn(pool, [&pool] { return Nested(pool, 50); }));
  }
  EXPECT_THAT(JoinAll(std::move(futures)).Wait(),
              IsOkAndHolds(testing::Each(50)));
  // Idle threads in excess exit.
  while (pool.stats().num_threads > 4) std::this_thread::yield();
}

TEST(ThreadPoolTest, NestedWaitsUseTheThreadsOfEarlierOnes) {
  ThreadPool pool({.num_threads = 1});
  // Returns the number of threads, once those that ran the waits are idle.
  const auto threads_after_waits = [&pool] {
    EXPECT_EQ(Nested(pool, 8), 8);
    while (pool.stats().num_idle < pool.stats().num_threads) {
      std::this_thread::yield();
    }
    return pool.stats().num_threads;
  };
  const int threads = threads_after_waits();
  EXPECT_GE(threads, 8);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(threads_after_waits(), threads);
}

TEST(ThreadPoolTest, BlockingRegionLetsAnotherThreadRun) {
  ThreadPool pool({.num_threads = 1});
  absl::Notification inner;
  Future<void> done = RunOn(pool, [&] {
    BlockingRegion region;
    BlockingRegion nested;
    inner.WaitForNotification();
  });
  pool.Post([&] {
    EXPECT_EQ(pool.stats().num_blocked, 1);
    inner.Notify();
  });
  EXPECT_THAT(done.Wait(), IsOk());
}

TEST(ThreadPoolTest, CapHoldsClosuresBackUntilAThreadResumes) {
  ThreadPool pool({.num_threads = 1, .max_threads = 2});
  Promise<void> go;
  std::vector<Future<void>> blocked;
  for (int i = 0; i < 2; ++i) {
    blocked.push_back(RunOn(
        pool, [future = go.future()] { return absl::Status(future.Wait()); }));
  }
  Future<void> behind = RunOn(pool, [] { return absl::OkStatus(); });
  while (pool.stats().num_blocked < 2) std::this_thread::yield();
  EXPECT_EQ(pool.stats().num_threads, 2);
  EXPECT_EQ(pool.stats().num_queued, 1);
  EXPECT_FALSE(behind.ready());
  go.Set(absl::OkStatus());
  EXPECT_THAT(behind.Wait(), IsOk());
  EXPECT_THAT(JoinAll(std::move(blocked)).Wait(), IsOk());
}

TEST(ThreadPoolTest, ResumedThreadTakesNoMoreWorkThanTheTargetAllows) {
  ThreadPool pool({.num_threads = 1});
  Promise<void> gate;
  std::atomic<bool> third_ran = false;
  Future<void> first = RunOn(
      pool,
      [wait_for = gate.future()]() -> absl::Status { return wait_for.Wait(); });
  Future<void> second = RunOn(pool, [&] {
    pool.Post([&] { third_ran = true; });
    gate.Set(absl::OkStatus());
    // The thread of the first closure becomes idle although a closure is
    // queued.
    while (pool.stats().num_idle == 0 && !third_ran) std::this_thread::yield();
    EXPECT_FALSE(third_ran);
  });
  EXPECT_THAT(first.Wait(), IsOk());
  EXPECT_THAT(second.Wait(), IsOk());
  pool.Shutdown();
  EXPECT_TRUE(third_ran);
}

TEST(ThreadPoolTest, ShutdownDrainsAndIsIdempotent) {
  ThreadPool pool({.num_threads = 2});
  std::atomic<int> ran = 0;
  for (int i = 0; i < 100; ++i) {
    pool.Post([&ran] { ++ran; });
  }
  std::thread other([&] { pool.Shutdown(); });
  pool.Shutdown();
  EXPECT_EQ(ran, 100);
  other.join();
  pool.Shutdown();
  EXPECT_EQ(pool.stats().num_threads, 0);
}

TEST(ThreadPoolTest, ShutdownDrainsNestedBlockingWork) {
  ThreadPool pool({.num_threads = 1});
  Promise<void> gate;
  std::atomic<int> ran = 0;
  pool.Post([&, future = gate.future()] {
    future.Wait();
    ++ran;
  });
  pool.Post([&] {
    gate.Set(absl::OkStatus());
    ++ran;
  });
  pool.Shutdown();
  EXPECT_EQ(ran, 2);
}

TEST(ThreadPoolTest, PostAfterShutdownDropsTheClosure) {
  ThreadPool pool({.num_threads = 1});
  pool.Shutdown();
  EXPECT_THAT(RunOn(pool, [] { return 1; }).Wait(),
              StatusIs(absl::StatusCode::kCancelled));
}

TEST(ThreadPoolTest, ContextOfThePosterIsRestored) {
  ThreadPool pool({.num_threads = 1});
  TaskLocal<int> number;
  Future<int> seen, without;
  {
    TaskLocal<int>::Scope scope(number, 9);
    seen = RunOn(pool, [&] { return *number.get(); });
  }
  without = RunOn(pool, [&] { return number.get() == nullptr ? 0 : 1; });
  EXPECT_THAT(seen.Wait(), IsOkAndHolds(9));
  EXPECT_THAT(without.Wait(), IsOkAndHolds(0));
}

TEST(ThreadPoolTest, TwoPoolsWaitForEachOther) {
  ThreadPool a({.num_threads = 1});
  ThreadPool b({.num_threads = 1});
  std::function<int(int)> bounce = [&](int depth) -> int {
    if (depth == 0) return 0;
    return 1 + *RunOn(depth % 2 == 0 ? a : b, [&, depth] {
                  return bounce(depth - 1);
                }).Wait();
  };
  EXPECT_EQ(bounce(50), 50);
}

TEST(ThreadPoolDeathTest, ShutdownFromItsOwnThreadIsNamed) {
  EXPECT_DEATH(
      {
        ThreadPool pool({.num_threads = 1});
        Future<void> never = RunOn(pool, [&] { pool.Shutdown(); });
        never.Wait();
      },
      "by one of its own threads");
}

TEST(ThreadPoolTest, ContinuesAfterAClosureThatThrows) {
  ThreadPool pool({.num_threads = 1});
  Promise<void> promise;
  Future<void> dropped = promise.future();
  pool.Post([promise = std::move(promise)] { throw 3; });
  EXPECT_THAT(dropped.Wait(), StatusIs(absl::StatusCode::kCancelled));
  Promise<void> after;
  Future<void> ran = after.future();
  pool.Post(
      [after = std::move(after)]() mutable { after.Set(absl::OkStatus()); });
  EXPECT_THAT(ran.Wait(), IsOk());
}

}  // namespace
}  // namespace hawser::async
