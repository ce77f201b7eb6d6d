#include "async/future.h"

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "async/task_local.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::async {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pointee;

TEST(FutureTest, SetBeforeGet) {
  Promise<int> promise;
  EXPECT_TRUE(promise.Set(3));
  Future<int> future = promise.future();
  EXPECT_TRUE(future.ready());
  EXPECT_THAT(future.Wait(), IsOkAndHolds(3));
  EXPECT_THAT(future.result(), IsOkAndHolds(3));
}

TEST(FutureTest, GetBeforeSetWakesEveryWaiter) {
  Promise<int> promise;
  Future<int> future = promise.future();
  std::vector<std::thread> waiters;
  for (int i = 0; i < 3; ++i) {
    waiters.emplace_back(
        [future] { EXPECT_THAT(future.Wait(), IsOkAndHolds(3)); });
  }
  promise.Set(3);
  for (std::thread& waiter : waiters) waiter.join();
}

TEST(FutureTest, SecondSetIsRefused) {
  Promise<int> promise;
  EXPECT_TRUE(promise.Set(1));
  EXPECT_FALSE(promise.Set(2));
  EXPECT_THAT(promise.future().Wait(), IsOkAndHolds(1));
}

TEST(FutureTest, OnlyOneOfConcurrentSetsWins) {
  for (int round = 0; round < 200; ++round) {
    Promise<int> promise;
    std::atomic<int> wins = 0;
    Future<int> future = promise.future();
    std::thread other([&] { wins += promise.Set(1); });
    wins += promise.Set(2);
    other.join();
    EXPECT_EQ(wins, 1);
    EXPECT_THAT(future.Wait(), IsOk());
  }
}

TEST(FutureTest, ErrorAndVoid) {
  Promise<void> promise;
  Future<void> future = promise.future();
  EXPECT_FALSE(future.ready());
  promise.Set(absl::AbortedError("x"));
  EXPECT_THAT(future.Wait(), StatusIs(absl::StatusCode::kAborted, "x"));
  EXPECT_THAT(MakeReadyFuture<void>(absl::OkStatus()).Wait(), IsOk());
}

TEST(FutureTest, DroppedPromiseCancels) {
  Future<int> future;
  EXPECT_FALSE(future.valid());
  {
    Promise<int> promise;
    future = promise.future();
    EXPECT_TRUE(future.valid());
  }
  EXPECT_THAT(future.Wait(), StatusIs(absl::StatusCode::kCancelled));
}

TEST(FutureTest, AssignedOverPromiseCancels) {
  Promise<int> promise;
  Future<int> future = promise.future();
  promise = Promise<int>();
  EXPECT_THAT(future.Wait(), StatusIs(absl::StatusCode::kCancelled));
}

TEST(FutureTest, WaitForTimesOutNamingWhat) {
  Promise<int> promise;
  Future<int> future = promise.future();
  EXPECT_THAT(future.WaitFor(absl::Milliseconds(1), "the reply of w1"),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       HasSubstr("waiting for the reply of w1")));
  EXPECT_THAT(future.WaitUntil(MonotonicTime::min()),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  promise.Set(4);
  EXPECT_THAT(future.WaitFor(absl::ZeroDuration()), IsOkAndHolds(4));
}

TEST(FutureTest, WaitForSeesALaterSet) {
  Promise<int> promise;
  Future<int> future = promise.future();
  std::thread setter([&] { promise.Set(5); });
  EXPECT_THAT(future.WaitFor(absl::InfiniteDuration()), IsOkAndHolds(5));
  setter.join();
}

TEST(FutureTest, CallbackBeforeSetRunsInTheSettersThread) {
  Promise<int> promise;
  std::thread::id ran_in;
  promise.future().OnReady([&](const absl::StatusOr<int>& result) {
    EXPECT_THAT(result, IsOkAndHolds(1));
    ran_in = std::this_thread::get_id();
  });
  std::thread setter([&] { promise.Set(1); });
  const std::thread::id setter_id = setter.get_id();
  setter.join();
  EXPECT_EQ(ran_in, setter_id);
}

TEST(FutureTest, CallbackAfterSetRunsAtOnce) {
  const Future<int> future = MakeReadyFuture<int>(1);
  int seen = 0;
  future.OnReady([&](const absl::StatusOr<int>& r) { seen = *r; });
  EXPECT_EQ(seen, 1);
}

TEST(FutureTest, CallbacksRunInTheOrderAddedWithoutLock) {
  Promise<int> promise;
  const Future<int> future = promise.future();
  std::vector<int> order;
  future.OnReady([&](const auto&) {
    order.push_back(1);
    // Added during completion, so it runs at once.
    future.OnReady([&](const auto&) { order.push_back(2); });
  });
  future.OnReady([&](const auto&) { order.push_back(3); });
  promise.Set(0);
  EXPECT_THAT(order, ElementsAre(1, 2, 3));
}

TEST(FutureTest, CallbackMayDestroyTheLastHandles) {
  auto promise = std::make_unique<Promise<std::string>>();
  auto future = std::make_unique<Future<std::string>>(promise->future());
  std::string seen;
  future->OnReady([&](const absl::StatusOr<std::string>& result) {
    future.reset();
    seen = *result;
  });
  Promise<std::string>* raw = promise.get();
  raw->Set(std::string(100, 'x'));
  EXPECT_EQ(seen, std::string(100, 'x'));

  Future<std::string> ready = MakeReadyFuture<std::string>(seen);
  ready.OnReady([&](const absl::StatusOr<std::string>& result) {
    ready = Future<std::string>();
    EXPECT_EQ(result->size(), 100u);
  });
}

TEST(FutureTest, SetterSurvivesAWaiterThatDestroysThePromise) {
  for (int round = 0; round < 500; ++round) {
    std::thread setter;
    {
      Promise<int> promise;
      Future<int> future = promise.future();
      setter = std::thread([&promise] { promise.Set(1); });
      while (!future.ready()) std::this_thread::yield();
    }
    setter.join();
  }
}

TEST(FutureTest, DestructionOfEveryHandleKeepsTheCallback) {
  Promise<int> promise;
  int seen = 0;
  {
    promise.future().OnReady([&](const auto& r) { seen = *r; });
  }
  promise.Set(2);
  EXPECT_EQ(seen, 2);
}

TEST(FutureTest, UnreadResultIsDestroyed) {
  auto guard = std::make_shared<int>();
  {
    Promise<std::shared_ptr<int>> promise;
    promise.Set(guard);
    EXPECT_EQ(guard.use_count(), 2);
  }
  EXPECT_EQ(guard.use_count(), 1);
}

TEST(FutureTest, CancelCompletesAndNotifiesTheProducer) {
  Promise<int> promise;
  Future<int> future = promise.future();
  int cancelled = 0;
  promise.OnCancel([&] { ++cancelled; });
  EXPECT_FALSE(promise.done());
  EXPECT_TRUE(future.Cancel());
  EXPECT_FALSE(future.Cancel());
  EXPECT_EQ(cancelled, 1);
  EXPECT_TRUE(promise.done());
  EXPECT_FALSE(promise.Set(1));
  EXPECT_THAT(future.Wait(), StatusIs(absl::StatusCode::kCancelled));
  promise.OnCancel([&] { ++cancelled; });
  EXPECT_EQ(cancelled, 2);
}

TEST(FutureTest, CancelAfterSetDoesNothing) {
  Promise<int> promise;
  auto guard = std::make_shared<int>();
  promise.OnCancel([guard] { FAIL(); });
  promise.Set(1);
  EXPECT_EQ(guard.use_count(), 1);
  promise.OnCancel([guard] { FAIL(); });
  EXPECT_EQ(guard.use_count(), 1);
  EXPECT_FALSE(promise.future().Cancel());
  EXPECT_THAT(promise.future().Wait(), IsOkAndHolds(1));
}

TEST(FutureTest, MoveOnlyResult) {
  Promise<std::unique_ptr<int>> promise;
  Future<std::unique_ptr<int>> future = promise.future();
  promise.OnCancel([] {});
  promise.Set(std::make_unique<int>(3));
  EXPECT_THAT(*future.Wait(), Pointee(3));
  EXPECT_THAT(std::move(future).Wait(), IsOkAndHolds(Pointee(3)));
}

TEST(FutureTest, OnlyTheLastReaderMoves) {
  Promise<std::vector<int>> promise;
  Future<std::vector<int>> first = promise.future();
  Future<std::vector<int>> second = first;
  promise.Set(std::vector<int>{1, 2});
  const int* data = second.Wait()->data();
  EXPECT_NE(std::move(first).Wait()->data(), data);
  EXPECT_EQ(std::move(second).Wait()->data(), data);
}

TEST(FutureTest, ContextOfTheAdderIsRestored) {
  TaskLocal<int> number;
  Promise<int> promise;
  std::vector<int> seen;
  {
    TaskLocal<int>::Scope scope(number, 1);
    promise.future().OnReady(
        [&](const auto&) { seen.push_back(*number.get()); });
  }
  TaskLocal<int>::Scope scope(number, 2);
  promise.future().OnReady([&](const auto&) { seen.push_back(*number.get()); });
  promise.Set(0);
  EXPECT_THAT(seen, ElementsAre(1, 2));
}

TEST(FutureTest, CallbacksAndSetRace) {
  for (int round = 0; round < 300; ++round) {
    Promise<std::string> promise;
    Future<std::string> future = promise.future();
    std::atomic<int> runs = 0;
    std::thread adder([&, future] {
      for (int i = 0; i < 5; ++i) {
        future.OnReady([&](const absl::StatusOr<std::string>& r) {
          runs += r->size() == 40;
        });
      }
    });
    std::thread setter([&] { promise.Set(std::string(40, 'a')); });
    EXPECT_THAT(std::move(future).Wait(), IsOkAndHolds(std::string(40, 'a')));
    adder.join();
    setter.join();
    EXPECT_EQ(runs, 5);
  }
}

TEST(FutureTest, CancelAndSetRace) {
  for (int round = 0; round < 300; ++round) {
    Promise<int> promise;
    Future<int> future = promise.future();
    std::atomic<int> hooks = 0;
    promise.OnCancel([&] { ++hooks; });
    bool set = false;
    std::thread setter([&] { set = promise.Set(1); });
    const bool cancelled = future.Cancel();
    setter.join();
    EXPECT_NE(set, cancelled);
    EXPECT_EQ(hooks, cancelled ? 1 : 0);
  }
}

TEST(FutureDeathTest, InvalidFutureIsNamed) {
  const Future<int> invalid;
  EXPECT_DEATH(invalid.Wait(), "invalid Future");
}

TEST(FutureTest, OnReadyAndOnCancelThatThrowEndThere) {
  Promise<int> promise;
  const Future<int> future = promise.future();
  promise.OnCancel([] { throw 3; });
  future.OnReady([](const auto&) { throw std::out_of_range("no such row"); });
  int seen = 0;
  future.OnReady([&](const auto&) { ++seen; });
  EXPECT_TRUE(future.Cancel());
  future.OnReady([](const auto&) { throw 3; });
  EXPECT_EQ(seen, 1);
}

}  // namespace
}  // namespace hawser::async
