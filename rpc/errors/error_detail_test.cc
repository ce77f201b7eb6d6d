#include "rpc/errors/error_detail.h"

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::rpc {
namespace {

using ::testing::Optional;

TEST(ErrorDetailTest, RoundTrips) {
  absl::Status status = absl::UnavailableError("gone");
  EXPECT_EQ(GetErrorDetail(status), std::nullopt);
  const ErrorDetail detail{.worker = "ps0",
                           .incarnation = Incarnation{0xc0ffee},
                           .maybe_applied = true};
  SetErrorDetail(detail, status);
  EXPECT_THAT(GetErrorDetail(status), Optional(detail));
}

TEST(ErrorDetailTest, MalformedDetailIsIgnored) {
  absl::Status status = absl::UnavailableError("gone");
  status.SetPayload("type.googleapis.com/hawser.v1.ErrorDetail",
                    absl::Cord("\xff\xff"));
  EXPECT_EQ(GetErrorDetail(status), std::nullopt);
}

}  // namespace
}  // namespace hawser::rpc
