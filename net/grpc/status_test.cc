#include "net/grpc/status.h"

#include <string>

#include "absl/status/status.h"
#include "async/testing/status_matchers.h"
#include "grpcpp/support/status.h"
#include "gtest/gtest.h"
#include "net/wire_text.h"

namespace hawser::net {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;

TEST(GrpcStatusTest, CodeAndMessageRoundTrip) {
  EXPECT_THAT(FromGrpcStatus(ToGrpcStatus(absl::AbortedError("lost"))),
              StatusIs(absl::StatusCode::kAborted, "lost"));
  EXPECT_TRUE(ToGrpcStatus(absl::OkStatus()).ok());
  EXPECT_THAT(FromGrpcStatus(grpc::Status::OK), IsOk());
}

TEST(GrpcStatusTest, MessagesFitTrailers) {
  std::string message(2 * kMaxErrorTextBytes, 'x');
  message += "\xff";
  const grpc::Status sent = ToGrpcStatus(absl::AbortedError(message));
  EXPECT_EQ(sent.error_message(), ToErrorText(message));
}

}  // namespace
}  // namespace hawser::net
