#include "async/coroutine.h"

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "async/task_local.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::async {
namespace {

Future<int> Sum(Future<int> a, Future<int> b) {
  CO_ASSIGN_OR_RETURN(const int x, co_await a);
  absl::StatusOr<int> y = co_await std::move(b);
  co_return x + y.value_or(0);
}

Future<void> Fail(Future<void> before) {
  CO_RETURN_IF_ERROR(co_await before);
  co_return absl::AbortedError("after");
}

Future<int> CountTo(int limit) {
  int count = 0;
  while (count < limit) {
    CO_ASSIGN_OR_RETURN(int one, co_await MakeReadyFuture<int>(1));
    count += one;
  }
  co_return count;
}

TEST(CoroutineTest, ReadyFuturesRunThrough) {
  Future<int> sum = Sum(MakeReadyFuture<int>(1), MakeReadyFuture<int>(2));
  EXPECT_TRUE(sum.ready());
  EXPECT_THAT(sum.Wait(), IsOkAndHolds(3));
  EXPECT_THAT(CountTo(100000).Wait(), IsOkAndHolds(100000));
}

TEST(CoroutineTest, SuspendsUntilSet) {
  Promise<int> a, b;
  Future<int> sum = Sum(a.future(), b.future());
  b.Set(2);
  EXPECT_FALSE(sum.ready());
  a.Set(1);
  EXPECT_TRUE(sum.ready());
  EXPECT_THAT(sum.Wait(), IsOkAndHolds(3));
}

TEST(CoroutineTest, ErrorsReturnEarly) {
  Promise<int> b;
  Future<int> sum =
      Sum(MakeReadyFuture<int>(absl::NotFoundError("k")), b.future());
  EXPECT_THAT(sum.Wait(), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(Fail(MakeReadyFuture<void>(absl::DataLossError("d"))).Wait(),
              StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(Fail(MakeReadyFuture<void>(absl::OkStatus())).Wait(),
              StatusIs(absl::StatusCode::kAborted, "after"));
}

TEST(CoroutineTest, DroppedPromiseEndsTheFrame) {
  auto guard = std::make_shared<int>();
  std::optional<Promise<void>> promise(std::in_place);
  auto hold = [](std::shared_ptr<int> held,
                 Future<void> future) -> Future<void> {
    std::shared_ptr<int> local = held;
    co_return co_await future;
  };
  Future<void> done = hold(guard, promise->future());
  EXPECT_EQ(guard.use_count(), 3);
  promise.reset();
  EXPECT_THAT(done.Wait(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(guard.use_count(), 1);
}

TEST(CoroutineTest, LocalsAreGoneBeforeTheFutureCompletes) {
  auto guard = std::make_shared<int>();
  Promise<void> promise;
  auto hold = []([[maybe_unused]] std::shared_ptr<int> held,
                 Future<void> future) -> Future<void> {
    co_return co_await future;
  };
  Future<void> done = hold(guard, promise.future());
  long uses = 0;
  done.OnReady([&](const absl::Status&) { uses = guard.use_count(); });
  promise.Set(absl::OkStatus());
  EXPECT_EQ(uses, 1);
}

TEST(CoroutineTest, ContextFollowsAcrossThreads) {
  TaskLocal<int> number;
  Promise<void> promise;
  auto read = [&number](Future<void> future) -> Future<int> {
    CO_RETURN_IF_ERROR(co_await future);
    co_return *number.get();
  };
  Future<int> seen;
  {
    TaskLocal<int>::Scope scope(number, 4);
    seen = read(promise.future());
  }
  std::thread setter([&] { promise.Set(absl::OkStatus()); });
  EXPECT_THAT(seen.Wait(), IsOkAndHolds(4));
  setter.join();
}

TEST(CoroutineTest, SetRacesWithSuspension) {
  for (int round = 0; round < 300; ++round) {
    Promise<int> a, b;
    std::thread setter([&] {
      a.Set(1);
      b.Set(2);
    });
    EXPECT_THAT(Sum(a.future(), b.future()).Wait(), IsOkAndHolds(3));
    setter.join();
  }
}

TEST(CoroutineTest, MoveOnlyResult) {
  auto pass =
      [](Future<std::unique_ptr<int>> future) -> Future<std::unique_ptr<int>> {
    co_return co_await std::move(future);
  };
  Promise<std::unique_ptr<int>> promise;
  Future<std::unique_ptr<int>> out = pass(promise.future());
  promise.Set(std::make_unique<int>(6));
  EXPECT_THAT(std::move(out).Wait(), IsOkAndHolds(testing::Pointee(6)));
}

TEST(CoroutineTest, ExceptionIsInternal) {
  const auto fail = [](Future<int> before) -> Future<int> {
    CO_ASSIGN_OR_RETURN(const int row, co_await std::move(before));
    if (row > 0) throw std::out_of_range("no such row");
    throw row;
  };
  const auto is_internal =
      StatusIs(absl::StatusCode::kInternal,
               testing::HasSubstr("a coroutine threw no such row"));
  EXPECT_THAT(fail(MakeReadyFuture<int>(1)).Wait(), is_internal);
  Promise<int> promise;
  Future<int> later = fail(promise.future());
  Future<int> behind = Sum(later, MakeReadyFuture<int>(1));
  promise.Set(1);
  EXPECT_THAT(later.Wait(), is_internal);
  EXPECT_THAT(behind.Wait(), is_internal);
  EXPECT_THAT(fail(MakeReadyFuture<int>(0)).Wait(),
              StatusIs(absl::StatusCode::kInternal,
                       testing::HasSubstr("not a std::exception")));
}

}  // namespace
}  // namespace hawser::async
