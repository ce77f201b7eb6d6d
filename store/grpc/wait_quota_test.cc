#include "store/grpc/wait_quota.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::store::internal {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(WaitQuotaTest, CallsPerClientAreLimited) {
  WaitQuota quota({.max_waiting_calls_per_client = 2});
  const auto first = quota.Admit("a", /*num_keys=*/1, /*bytes=*/1);
  {
    const auto second = quota.Admit("a", /*num_keys=*/1, /*bytes=*/1);
    EXPECT_THAT(second, IsOk());
    EXPECT_THAT(quota.Admit("a", /*num_keys=*/1, /*bytes=*/1),
                StatusIs(absl::StatusCode::kResourceExhausted,
                         AllOf(HasSubstr("client 'a' has 2 waiting calls"),
                               HasSubstr("max_waiting_calls_per_client"))));
    EXPECT_THAT(quota.Admit("b", /*num_keys=*/1, /*bytes=*/1), IsOk());
  }
  EXPECT_THAT(quota.Admit("a", /*num_keys=*/1, /*bytes=*/1), IsOk());
}

TEST(WaitQuotaTest, TotalIsLimited) {
  WaitQuota quota({.max_waiting_calls = 2});
  const auto first = quota.Admit("a", /*num_keys=*/1, /*bytes=*/1);
  const auto second = quota.Admit("b", /*num_keys=*/1, /*bytes=*/1);
  EXPECT_THAT(second, IsOk());
  EXPECT_THAT(quota.Admit("c", /*num_keys=*/1, /*bytes=*/1),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("max_waiting_calls:")));
}

TEST(WaitQuotaTest, KeysAreCountedWithTheirOverhead) {
  // Two short keys count as 260 bytes.
  WaitQuota quota(
      {.max_waiting_bytes = 600, .max_waiting_bytes_per_client = 400});
  const auto first = quota.Admit("a", /*num_keys=*/2, /*bytes=*/2);
  EXPECT_THAT(first, IsOk());
  EXPECT_THAT(quota.Admit("a", /*num_keys=*/2, /*bytes=*/2),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("2 keys"),
                             HasSubstr("max_waiting_bytes_per_client"))));
  const auto second = quota.Admit("b", /*num_keys=*/2, /*bytes=*/2);
  EXPECT_THAT(second, IsOk());
  EXPECT_THAT(quota.Admit("c", /*num_keys=*/2, /*bytes=*/2),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("max_waiting_bytes:")));
  EXPECT_THAT(quota.Admit("d", /*num_keys=*/1, /*bytes=*/600),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST(WaitQuotaTest, LimitsMustBePositive) {
  EXPECT_THAT(Validate({}), IsOk());
  EXPECT_THAT(Validate({.max_waiting_calls = 0}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("max_waiting_calls ")));
  EXPECT_THAT(Validate({.memory_quota_bytes = 0}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("memory_quota_bytes")));
}

}  // namespace
}  // namespace hawser::store::internal
