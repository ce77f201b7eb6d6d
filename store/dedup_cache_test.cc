#include "store/dedup_cache.h"

#include <string>

#include "absl/status/status.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::store::internal {
namespace {

using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;

TEST(DedupCacheTest, RetryGetsTheFirstReply) {
  DedupCache changes(10, 1000);
  int applied = 0;
  const auto apply = [&]() -> absl::StatusOr<std::string> {
    return std::to_string(++applied);
  };
  EXPECT_THAT(changes.Once({1, 1}, apply).Wait(), IsOkAndHolds("1"));
  EXPECT_THAT(changes.Once({1, 1}, apply).Wait(), IsOkAndHolds("1"));
  EXPECT_THAT(changes.Once({1, 2}, apply).Wait(), IsOkAndHolds("2"));
  EXPECT_THAT(changes.Once({2, 1}, apply).Wait(), IsOkAndHolds("3"));
}

TEST(DedupCacheTest, ErrorsAreRepliesToo) {
  DedupCache changes(10, 1000);
  int applied = 0;
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(changes
                    .Once({1, 1},
                          [&]() -> absl::StatusOr<std::string> {
                            ++applied;
                            return absl::OutOfRangeError("x");
                          })
                    .Wait(),
                StatusIs(absl::StatusCode::kOutOfRange));
  }
  EXPECT_EQ(applied, 1);
}

TEST(DedupCacheTest, RetryDuringTheFirstCallWaitsForIt) {
  DedupCache changes(10, 1000);
  async::Future<std::string> repeated;
  async::Future<std::string> first =
      changes.Once({1, 1}, [&]() -> absl::StatusOr<std::string> {
        repeated = changes.Once({1, 1}, []() -> absl::StatusOr<std::string> {
          return "applied twice";
        });
        EXPECT_FALSE(repeated.ready());
        return "once";
      });
  EXPECT_THAT(first.Wait(), IsOkAndHolds("once"));
  EXPECT_THAT(repeated.Wait(), IsOkAndHolds("once"));
}

TEST(DedupCacheTest, OldestRepliesAreEvicted) {
  DedupCache by_count(2, 1000);
  DedupCache by_bytes(100, 20);
  for (DedupCache* changes : {&by_count, &by_bytes}) {
    int applied = 0;
    const auto apply = [&]() -> absl::StatusOr<std::string> {
      ++applied;
      return std::string(10, 'x');
    };
    for (uint64_t sequence : {1, 2, 3}) {
      EXPECT_THAT(changes->Once({1, sequence}, apply).Wait(), async::IsOk());
    }
    EXPECT_THAT(changes->Once({1, 3}, apply).Wait(), async::IsOk());
    EXPECT_EQ(applied, 3);
    EXPECT_THAT(changes->Once({1, 1}, apply).Wait(), async::IsOk());
    EXPECT_EQ(applied, 4);
  }
}

}  // namespace
}  // namespace hawser::store::internal
