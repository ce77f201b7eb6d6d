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

TEST(ErrorDetailTest, PrintedStatusHasTheDetailInWords) {
  PrintErrorDetailsInWords();
  PrintErrorDetailsInWords();
  absl::Status status = absl::UnavailableError("gone");
  SetErrorDetail({.worker = "ps0",
                  .incarnation = Incarnation{0xc0ffee},
                  .maybe_applied = true},
                 status);
  EXPECT_EQ(status.ToString(),
            "UNAVAILABLE: gone [type.googleapis.com/hawser.v1.ErrorDetail="
            "'worker 'ps0' (incarnation 0000000000c0ffee), the call may have "
            "run']");
  EXPECT_EQ(ToString(ErrorDetail()),
            "an unknown worker, the call did not run or its function failed");
  // Other payloads are printed as before.
  absl::Status other = absl::UnavailableError("gone");
  other.SetPayload("url", absl::Cord("\x01"));
  EXPECT_EQ(other.ToString(), "UNAVAILABLE: gone [url='\\x01']");
}

}  // namespace
}  // namespace hawser::rpc
