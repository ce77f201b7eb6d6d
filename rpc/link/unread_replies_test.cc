#include "rpc/link/unread_replies.h"

#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "net/per_peer_quota.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr size_t kMiB = size_t{1} << 20;

auto IsRefused() {
  return StatusIs(absl::StatusCode::kResourceExhausted,
                  AllOf(HasSubstr("unread replies"),
                        HasSubstr("GrpcLimits::memory_quota_bytes")));
}

TEST(UnreadRepliesTest, PeerHasHalfOfTheQuota) {
  const auto quota = MakeReplyQuota(8 * kMiB, kMiB);
  UnreadReplies first(quota, "a");
  UnreadReplies second(quota, "a");
  UnreadReplies other(quota, "b");
  EXPECT_THAT(first.Add(3 * kMiB), IsOk());
  EXPECT_THAT(second.Add(kMiB), IsOk());
  EXPECT_THAT(second.Add(1), IsRefused());
  EXPECT_THAT(first.CheckRoom(), IsRefused());
  EXPECT_THAT(other.CheckRoom(), IsOk());
  EXPECT_THAT(other.Add(4 * kMiB), IsOk());
  first.Remove(3 * kMiB);
  EXPECT_THAT(second.Add(2 * kMiB), IsOk());
}

TEST(UnreadRepliesTest, LongestMessageIsAdmitted) {
  const auto quota = MakeReplyQuota(8 * kMiB, 6 * kMiB);
  UnreadReplies replies(quota, "a");
  EXPECT_THAT(replies.Add(6 * kMiB), IsOk());
  EXPECT_THAT(replies.Add(kMiB), IsRefused());
}

TEST(UnreadRepliesTest, ReadRepliesAreNotCounted) {
  const auto quota = MakeReplyQuota(8 * kMiB, kMiB);
  UnreadReplies replies(quota, "a");
  // More in all than the quota, in small parts.
  for (int i = 0; i < 1000; ++i) {
    ASSERT_THAT(replies.Add(40'000), IsOk());
    ASSERT_THAT(replies.Add(50'000), IsOk());
    replies.Remove(40'000);
    replies.Remove(50'000);
  }
  EXPECT_EQ(quota->num_peers(), 0);
  ASSERT_THAT(replies.Add(4 * kMiB), IsOk());
  replies.Remove(3 * kMiB);
  ASSERT_THAT(replies.Add(3 * kMiB), IsOk());
  replies.Clear();
  EXPECT_EQ(quota->num_peers(), 0);
}

// What was read is free again, also if most was not.
TEST(UnreadRepliesTest, RoomFollowsWhatWasRead) {
  const auto quota = MakeReplyQuota(8 * kMiB, kMiB);
  UnreadReplies replies(quota, "a");
  ASSERT_THAT(replies.Add(4 * kMiB), IsOk());
  EXPECT_THAT(replies.CheckRoom(), IsRefused());
  replies.Remove(kMiB);
  EXPECT_THAT(replies.CheckRoom(), IsOk());
}

TEST(UnreadRepliesTest, EndedLinkReleasesItsShare) {
  const auto quota = MakeReplyQuota(8 * kMiB, kMiB);
  {
    UnreadReplies replies(quota, "a");
    ASSERT_THAT(replies.Add(4 * kMiB), IsOk());
  }
  EXPECT_EQ(quota->num_peers(), 0);
}

TEST(UnreadRepliesTest, NothingIsLimitedWithoutAQuota) {
  UnreadReplies replies;
  EXPECT_THAT(replies.Add(size_t{1} << 40), IsOk());
  EXPECT_THAT(replies.CheckRoom(), IsOk());
}

}  // namespace
}  // namespace hawser::rpc
