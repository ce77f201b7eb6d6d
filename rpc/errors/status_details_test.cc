#include "rpc/errors/status_details.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "async/testing/status_matchers.h"
#include "gtest/gtest.h"
#include "net/wire_text.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::StatusIs;

TEST(StatusDetailsTest, AreReadAsTheyWereWritten) {
  absl::Status status = absl::OutOfRangeError("caf\xc3\xa9");
  status.SetPayload("type.googleapis.com/x", absl::Cord("\xff\x00"));
  EXPECT_EQ(FromStatusDetails(ToStatusDetails(status)), status);
}

// Protobuf refuses to read a string that is not UTF-8.
TEST(StatusDetailsTest, StringsAreUtf8WhateverTheStatusHas) {
  absl::Status status = absl::OutOfRangeError("caf\xe9");
  status.SetPayload("type.googleapis.com/\xe9", absl::Cord("lost"));
  status.SetPayload("type.googleapis.com/x", absl::Cord("kept"));
  v1::StatusDetails read;
  ASSERT_TRUE(
      read.ParseFromString(ToStatusDetails(status).SerializeAsString()));
  const absl::Status received = FromStatusDetails(read);
  EXPECT_THAT(received,
              StatusIs(absl::StatusCode::kOutOfRange, "caf\xef\xbf\xbd"));
  EXPECT_EQ(received.GetPayload("type.googleapis.com/x"), "kept");
}

TEST(StatusDetailsTest, MessageOfAPeerIsAsShortAsOneThatIsSent) {
  v1::StatusDetails details;
  details.set_code(static_cast<int>(absl::StatusCode::kOutOfRange));
  details.set_message(std::string(5000, '\xff'));
  const absl::Status status = FromStatusDetails(details);
  EXPECT_EQ(status.message().size(), net::kMaxErrorTextBytes);
}

}  // namespace
}  // namespace hawser::rpc
