#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "async/future.h"
#include "async/task_local.h"
#include "async/testing/manual_executor.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::async {
namespace {

using ::testing::HasSubstr;
using ::testing::Pointee;

TEST(FutureThenTest, EveryKindOfReturn) {
  Promise<int> promise;
  const Future<int> future = promise.future();
  Future<int> value = future.Then([](absl::StatusOr<int> r) { return *r + 1; });
  Future<void> nothing = future.Then([](const absl::StatusOr<int>&) {});
  Future<void> status =
      future.Then([](absl::StatusOr<int>) { return absl::AbortedError("s"); });
  Future<std::string> either =
      future.Then([](absl::StatusOr<int> r) -> absl::StatusOr<std::string> {
        if (*r == 1) return absl::NotFoundError("n");
        return "ok";
      });
  Promise<double> inner;
  Future<double> flat =
      future.Then([&](absl::StatusOr<int>) { return inner.future(); });
  promise.Set(1);
  EXPECT_THAT(value.Wait(), IsOkAndHolds(2));
  EXPECT_THAT(nothing.Wait(), IsOk());
  EXPECT_THAT(status.Wait(), StatusIs(absl::StatusCode::kAborted));
  EXPECT_THAT(either.Wait(), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_FALSE(flat.ready());
  inner.Set(0.5);
  EXPECT_THAT(flat.Wait(), IsOkAndHolds(0.5));
}

TEST(FutureThenTest, ErrorReachesTheCallback) {
  Future<int> failed = MakeReadyFuture<int>(absl::NotFoundError("k"));
  Future<std::string> text = failed.Then(
      [](absl::StatusOr<int> r) { return std::string(r.status().message()); });
  EXPECT_THAT(text.Wait(), IsOkAndHolds("k"));
}

TEST(FutureThenTest, InnerFutureOfDroppedPromiseCancels) {
  Future<int> flat =
      MakeReadyFuture<void>(absl::OkStatus()).Then([](absl::Status) {
        return Promise<int>().future();
      });
  EXPECT_THAT(flat.Wait(), StatusIs(absl::StatusCode::kCancelled));
}

TEST(FutureThenTest, InvalidInnerFutureIsAnError) {
  Future<int> flat = MakeReadyFuture<int>(0).Then(
      [](absl::StatusOr<int>) { return Future<int>(); });
  EXPECT_THAT(flat.Wait(), StatusIs(absl::StatusCode::kInternal));
}

TEST(FutureThenTest, MovesTheResultAlongASingleChain) {
  Promise<std::unique_ptr<int>> promise;
  Future<std::unique_ptr<int>> last =
      promise.future()
          .Then([](absl::StatusOr<std::unique_ptr<int>> r) {
            ++**r;
            return r;
          })
          .Then([](absl::StatusOr<std::unique_ptr<int>> r) {
            return MakeReadyFuture<std::unique_ptr<int>>(std::move(r));
          });
  promise.Set(std::make_unique<int>(1));
  EXPECT_THAT(std::move(last).Wait(), IsOkAndHolds(Pointee(2)));
}

TEST(FutureThenTest, RunsOnTheExecutorUnderTheAddersContext) {
  ManualExecutor executor;
  TaskLocal<int> number;
  Promise<int> promise;
  Future<int> sum;
  {
    TaskLocal<int>::Scope scope(number, 10);
    sum = promise.future().Then(
        &executor, [&](absl::StatusOr<int> r) { return *r + *number.get(); });
  }
  EXPECT_EQ(executor.num_queued(), 0u);
  promise.Set(1);
  EXPECT_FALSE(sum.ready());
  EXPECT_EQ(executor.RunAll(), 1u);
  EXPECT_THAT(sum.Wait(), IsOkAndHolds(11));
}

TEST(FutureThenTest, ExecutorThatDropsCancels) {
  Future<int> next;
  {
    ManualExecutor executor;
    next = MakeReadyFuture<int>(1).Then(
        &executor, [](absl::StatusOr<int> r) { return *r; });
  }
  EXPECT_THAT(next.Wait(), StatusIs(absl::StatusCode::kCancelled));
}

TEST(FutureThenTest, LongChainCompletesInBoundedStack) {
  Promise<int> promise;
  Future<int> future = promise.future();
  for (int i = 0; i < 100000; ++i) {
    future =
        std::move(future).Then([](absl::StatusOr<int> r) { return *r + 1; });
  }
  promise.Set(0);
  EXPECT_THAT(future.Wait(), IsOkAndHolds(100000));
}

TEST(FutureThenTest, LongChainIsCancelledInBoundedStack) {
  Future<int> future;
  {
    Promise<int> promise;
    future = promise.future();
    for (int i = 0; i < 100000; ++i) {
      future = std::move(future).Then([](absl::StatusOr<int> r) { return r; });
    }
  }
  EXPECT_THAT(future.Wait(), StatusIs(absl::StatusCode::kCancelled));
}

TEST(FutureThenTest, CallbackThatWaitsForADeferredOneDoesNotDeadlock) {
  Promise<int> promise;
  Future<int> future = promise.future();
  for (int i = 0; i < 250; ++i) {
    future = std::move(future).Then([](absl::StatusOr<int> r) {
      Promise<int> inner;
      Future<int> plus_one =
          inner.future().Then([](absl::StatusOr<int> n) { return *n + 1; });
      inner.Set(*r);
      return *plus_one.Wait();
    });
  }
  promise.Set(0);
  EXPECT_THAT(future.Wait(), IsOkAndHolds(250));
}

// A callback throws before and after completion, with and without an executor,
// for each return type.
TEST(FutureThenTest, CallbackThatThrowsIsInternal) {
  const auto is_internal =
      StatusIs(absl::StatusCode::kInternal, HasSubstr("threw no such row"));
  const auto to_value = [](absl::StatusOr<int>) -> int {
    throw std::out_of_range("no such row");
  };
  const auto to_nothing = [](const absl::StatusOr<int>&) {
    throw std::out_of_range("no such row");
  };
  const auto to_future = [](absl::StatusOr<int>) -> Future<int> {
    throw std::out_of_range("no such row");
  };
  EXPECT_THAT(MakeReadyFuture<int>(1).Then(to_value).Wait(), is_internal);
  ManualExecutor executor;
  Promise<int> promise;
  const Future<int> future = promise.future();
  const Future<int> value = future.Then(to_value);
  const Future<void> nothing = future.Then(to_nothing);
  const Future<int> inner = future.Then(to_future);
  const Future<int> posted = future.Then(&executor, to_value);
  // Continuations of a callback that threw get the error; its siblings run.
  const Future<int> behind =
      value.Then([](absl::StatusOr<int> result) { return result; });
  const Future<int> beside =
      future.Then([](absl::StatusOr<int> result) { return *result + 1; });
  promise.Set(1);
  executor.RunAll();
  EXPECT_THAT(value.Wait(), is_internal);
  EXPECT_THAT(nothing.Wait(), is_internal);
  EXPECT_THAT(inner.Wait(), is_internal);
  EXPECT_THAT(posted.Wait(), is_internal);
  EXPECT_THAT(behind.Wait(), is_internal);
  EXPECT_THAT(beside.Wait(), IsOkAndHolds(2));
}

// A result that throws when it is copied.
TEST(FutureThenTest, CopyThatThrowsIsInternal) {
  struct Fragile {
    Fragile() = default;
    Fragile(const Fragile&) { throw std::out_of_range("no copy"); }
    Fragile(Fragile&&) noexcept {}
  };
  Promise<Fragile> promise;
  const Future<Fragile> kept = promise.future();
  const Future<int> next =
      kept.Then([](const absl::StatusOr<Fragile>&) { return 1; });
  promise.Set(Fragile());
  EXPECT_THAT(next.Wait(),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("no copy")));
}

}  // namespace
}  // namespace hawser::async
