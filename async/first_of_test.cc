#include "async/first_of.h"

#include "absl/status/status.h"
#include "async/future.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::async {
namespace {

TEST(FirstOfTest, CompletesWithTheFirstResult) {
  Promise<void> a, b;
  const Future<void> first = FirstOf({a.future(), b.future()});
  EXPECT_FALSE(first.ready());
  b.Set(absl::AbortedError("b"));
  ASSERT_TRUE(first.ready());
  a.Set(absl::OkStatus());
  EXPECT_EQ(first.result(), absl::AbortedError("b"));
}

TEST(FirstOfTest, PrefersTheEarlierOfTwoCompleteFutures) {
  EXPECT_EQ(FirstOf({MakeReadyFuture<void>(absl::AbortedError("a")),
                     MakeReadyFuture<void>(absl::OkStatus())})
                .result(),
            absl::AbortedError("a"));
}

TEST(FirstOfTest, OthersGoOn) {
  Promise<void> a, b;
  const Future<void> other = b.future();
  EXPECT_FALSE(FirstOf({a.future(), other}).ready());
  a.Set(absl::OkStatus());
  EXPECT_FALSE(other.ready());
}

}  // namespace
}  // namespace hawser::async
