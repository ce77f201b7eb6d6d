#include "rpc/peers/call_quota.h"

#include "absl/status/status.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

auto Exceeds(const char* limit) {
  return StatusIs(absl::StatusCode::kResourceExhausted,
                  AllOf(HasSubstr(limit), HasSubstr("'a'")));
}

TEST(CallQuotaTest, CallsOfOnePeerAreLimitedUntilOneEnds) {
  CallQuota quota({.max_calls_per_peer = 2});
  auto first = quota.Admit("a", 0);
  auto second = quota.Admit("a", 0);
  ASSERT_THAT(first, IsOk());
  ASSERT_THAT(second, IsOk());
  EXPECT_THAT(quota.Admit("a", 0), Exceeds("max_calls_per_peer"));
  EXPECT_THAT(quota.Admit("b", 0), IsOk());
  *first = CallQuota::Reservation();
  EXPECT_THAT(quota.Admit("a", 0), IsOk());
}

TEST(CallQuotaTest, CallsOfAllPeersAreLimited) {
  CallQuota quota({.max_calls = 2});
  auto first = quota.Admit("b", 0);
  auto second = quota.Admit("c", 0);
  EXPECT_THAT(quota.Admit("a", 0), Exceeds("max_calls"));
  *second = CallQuota::Reservation();
  EXPECT_THAT(quota.Admit("a", 0), IsOk());
}

TEST(CallQuotaTest, BytesAreLimitedUntilTheyAreReleased) {
  CallQuota quota({.max_request_bytes_per_peer = 100});
  auto first = quota.Admit("a", 60);
  ASSERT_THAT(first, IsOk());
  EXPECT_THAT(quota.Admit("a", 41), Exceeds("max_request_bytes_per_peer"));
  EXPECT_THAT(quota.Admit("a", ~size_t{0}),
              Exceeds("max_request_bytes_per_peer"));
  EXPECT_THAT(quota.Admit("b", 100), IsOk());
  {
    auto rest = quota.Admit("a", 40);
    EXPECT_THAT(rest, IsOk());
    EXPECT_THAT(quota.Admit("a", 1), Exceeds("max_request_bytes_per_peer"));
  }
  first->ReleaseBytes();
  EXPECT_THAT(quota.Admit("a", 100), IsOk());
}

TEST(CallQuotaTest, LimitsMustBePositive) {
  EXPECT_THAT(Validate(CallLimits{}), IsOk());
  EXPECT_THAT(
      Validate(CallLimits{.max_calls_per_peer = 0}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("per_peer")));
}

}  // namespace
}  // namespace hawser::rpc
