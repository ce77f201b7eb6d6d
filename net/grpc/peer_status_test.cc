#include <string>

#include "absl/status/status.h"
#include "async/testing/status_matchers.h"
#include "grpcpp/support/status.h"
#include "gtest/gtest.h"
#include "net/grpc/status.h"
#include "net/wire_text.h"

namespace hawser::net {
namespace {

using ::hawser::async::StatusIs;

TEST(GrpcStatusTest, StatusOfAPeerIsNotTrusted) {
  std::string message(2 * kMaxErrorTextBytes, 'x');
  message += "\xff";
  for (const int code : {-1, 17, 1000}) {
    const absl::Status status = FromGrpcStatus(
        grpc::Status(static_cast<grpc::StatusCode>(code), message));
    EXPECT_THAT(status,
                StatusIs(absl::StatusCode::kUnknown, ToErrorText(message)));
    // Unlike code(), it would keep an unknown code.
    EXPECT_EQ(status.raw_code(), static_cast<int>(absl::StatusCode::kUnknown));
  }
}

}  // namespace
}  // namespace hawser::net
