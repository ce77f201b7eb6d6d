#include "rpc/grpc/status.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "async/testing/status_matchers.h"
#include "grpcpp/support/status.h"
#include "gtest/gtest.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::StatusIs;

TEST(StatusTest, PayloadsRoundTrip) {
  absl::Status status = absl::AbortedError("lost");
  status.SetPayload("type", absl::Cord("payload"));
  EXPECT_EQ(FromGrpcStatus(ToGrpcStatus(status)), status);
  EXPECT_EQ(FromGrpcStatus(ToGrpcStatus(absl::AbortedError("lost"))),
            absl::AbortedError("lost"));
  EXPECT_EQ(FromGrpcStatus(ToGrpcStatus(absl::OkStatus())), absl::OkStatus());
}

// The code and message in the details have no effect.
TEST(StatusTest, DetailsOfAPeerAreNotTrusted) {
  absl::Status other = absl::NotFoundError("other");
  other.SetPayload("type", absl::Cord("payload"));
  const std::string details = ToGrpcStatus(other).error_details();
  ASSERT_FALSE(details.empty());
  const absl::Status status = FromGrpcStatus(
      ::grpc::Status(::grpc::StatusCode::ABORTED, "lost", details));
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kAborted, "lost"));
  EXPECT_EQ(status.GetPayload("type"), absl::Cord("payload"));
  // Malformed, and longer than any that is sent.
  std::string long_details = details;
  while (long_details.size() <= 6000) long_details += details;
  for (const std::string& bad : {details + "\x0a\x7f", long_details}) {
    EXPECT_EQ(FromGrpcStatus(
                  ::grpc::Status(::grpc::StatusCode::ABORTED, "lost", bad)),
              absl::AbortedError("lost"));
  }
}

}  // namespace
}  // namespace hawser::rpc
