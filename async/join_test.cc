#include "async/join.h"

#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::async {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

template <class T>
std::vector<Future<T>> FuturesOf(const std::vector<Promise<T>>& promises) {
  std::vector<Future<T>> futures;
  for (const Promise<T>& promise : promises) {
    futures.push_back(promise.future());
  }
  return futures;
}

TEST(JoinAllTest, EmptyIsReady) {
  EXPECT_THAT(JoinAll(std::vector<Future<int>>()).Wait(),
              IsOkAndHolds(IsEmpty()));
  EXPECT_THAT(JoinAll(std::vector<Future<void>>()).Wait(), IsOk());
  EXPECT_THAT(JoinAllSettled(std::vector<Future<void>>()).Wait(),
              IsOkAndHolds(IsEmpty()));
}

TEST(JoinAllTest, ValuesKeepTheOrderOfTheFutures) {
  std::vector<Promise<int>> promises(3);
  Future<std::vector<int>> all = JoinAll(FuturesOf(promises));
  promises[2].Set(2);
  promises[0].Set(0);
  EXPECT_FALSE(all.ready());
  promises[1].Set(1);
  EXPECT_THAT(all.Wait(), IsOkAndHolds(ElementsAre(0, 1, 2)));
}

TEST(JoinAllTest, FirstErrorInTimeWinsAfterAllAreReady) {
  std::vector<Promise<int>> promises(3);
  Future<std::vector<int>> all = JoinAll(FuturesOf(promises));
  promises[1].Set(absl::AbortedError("first"));
  promises[0].Set(absl::InternalError("second"));
  EXPECT_FALSE(all.ready());
  promises[2].Set(1);
  EXPECT_THAT(all.Wait(), StatusIs(absl::StatusCode::kAborted, "first"));
}

TEST(JoinAllTest, Void) {
  std::vector<Promise<void>> promises(2);
  Future<void> all = JoinAll(FuturesOf(promises));
  promises[0].Set(absl::OkStatus());
  promises[1].Set(absl::NotFoundError("x"));
  EXPECT_THAT(all.Wait(), StatusIs(absl::StatusCode::kNotFound));
}

TEST(JoinAllTest, MoveOnlyValuesAreMoved) {
  std::vector<Promise<std::unique_ptr<int>>> promises(2);
  auto all = JoinAll(FuturesOf(promises));
  for (auto& promise : promises) promise.Set(std::make_unique<int>(1));
  EXPECT_EQ(std::move(all).Wait()->size(), 2u);
}

TEST(JoinAllTest, ManyFromManyThreads) {
  std::vector<Promise<int>> promises(1000);
  Future<std::vector<int>> all = JoinAll(FuturesOf(promises));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = t; i < promises.size(); i += 4) {
        promises[i].Set(static_cast<int>(i));
      }
    });
  }
  const absl::StatusOr<std::vector<int>>& values = all.Wait();
  ASSERT_THAT(values, IsOk());
  for (int i = 0; i < 1000; ++i) EXPECT_EQ((*values)[i], i);
  for (std::thread& thread : threads) thread.join();
}

TEST(JoinAllSettledTest, KeepsEachResult) {
  std::vector<Promise<int>> promises(3);
  auto all = JoinAllSettled(FuturesOf(promises));
  promises[0].Set(5);
  promises[1].Set(absl::AbortedError("x"));
  promises[2] = Promise<int>();
  ASSERT_THAT(all.Wait(), IsOk());
  EXPECT_THAT((*all.Wait())[0], IsOkAndHolds(5));
  EXPECT_THAT((*all.Wait())[1], StatusIs(absl::StatusCode::kAborted));
  EXPECT_THAT((*all.Wait())[2], StatusIs(absl::StatusCode::kCancelled));
}

}  // namespace
}  // namespace hawser::async
