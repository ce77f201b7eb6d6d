#include "rpc/errors/status_prefix.h"

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "async/testing/status_matchers.h"
#include "gtest/gtest.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;

TEST(StatusPrefixTest, CodeAndPayloadsAreKept) {
  absl::Status status = absl::AbortedError("lost");
  status.SetPayload("type", absl::Cord("payload"));
  const absl::Status prefixed = WithPrefix("worker 'a'", status);
  EXPECT_THAT(prefixed,
              StatusIs(absl::StatusCode::kAborted, "worker 'a': lost"));
  EXPECT_EQ(prefixed.GetPayload("type"), absl::Cord("payload"));
}

TEST(StatusPrefixTest, SuccessHasNoPrefix) {
  EXPECT_THAT(WithPrefix("worker 'a'", absl::OkStatus()), IsOk());
}

}  // namespace
}  // namespace hawser::rpc
