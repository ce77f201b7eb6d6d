#include "rpc/wire/call_body.h"

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/rpc.pb.h"
#include "rpc/wire/wire_format.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::HasSubstr;

// Fields that a later version may add, of each wire type.
std::string UnknownFields() {
  std::string out;
  internal::AppendVarintField(900, 1, out);
  internal::AppendFixed64Field(901, 2, out);
  internal::AppendBytesField(902, "unknown", out);
  // Known numbers with another type.
  internal::AppendVarintField(1, 3, out);
  internal::AppendFixed64Field(2, 4, out);
  internal::AppendVarintField(3, 5, out);
  return out;
}

TEST(CallBodyTest, RequestSurvivesARoundTrip) {
  const std::string bytes = EncodeCallBody(
      {.function = "f", .signature = "int64()", .arguments = "\x01\xff"});
  const absl::StatusOr<CallBody> body = ParseCallBody(bytes);
  ASSERT_THAT(body, IsOk());
  EXPECT_EQ(body->function, "f");
  EXPECT_EQ(body->signature, "int64()");
  EXPECT_EQ(body->arguments, "\x01\xff");
  // A view, not a copy.
  EXPECT_GE(body->function.data(), bytes.data());
  EXPECT_LT(body->function.data(), bytes.data() + bytes.size());
}

TEST(CallBodyTest, RequestIsACallRequest) {
  v1::CallRequest request;
  ASSERT_TRUE(request.ParseFromString(
      EncodeCallBody({.function = "f", .signature = "s", .arguments = ""})));
  EXPECT_EQ(request.function(), "f");
  EXPECT_EQ(request.signature(), "s");
  EXPECT_TRUE(request.has_arguments());
  EXPECT_EQ(request.GetReflection()->GetUnknownFields(request).field_count(),
            0);
}

TEST(CallBodyTest, ResultsSurviveARoundTrip) {
  EXPECT_THAT(ParseCallResults(EncodeCallResults("\x01\xff")),
              IsOkAndHolds(std::string_view("\x01\xff")));
  v1::CallReply reply;
  ASSERT_TRUE(reply.ParseFromString(EncodeCallResults("")));
  EXPECT_TRUE(reply.has_results());
}

TEST(CallBodyTest, AbsentFieldsAreEmpty) {
  const absl::StatusOr<CallBody> body = ParseCallBody("");
  ASSERT_THAT(body, IsOk());
  EXPECT_EQ(body->function, "");
  EXPECT_EQ(body->signature, "");
  EXPECT_EQ(body->arguments, "");
  EXPECT_THAT(ParseCallResults(""), IsOkAndHolds(std::string_view()));
}

TEST(CallBodyTest, UnknownFieldsAreIgnored) {
  const std::string unknown = UnknownFields();
  const std::string request =
      unknown +
      EncodeCallBody({.function = "f", .signature = "s", .arguments = "a"}) +
      unknown;
  const absl::StatusOr<CallBody> body = ParseCallBody(request);
  ASSERT_THAT(body, IsOk());
  EXPECT_EQ(body->function, "f");
  EXPECT_EQ(body->signature, "s");
  EXPECT_EQ(body->arguments, "a");
  const std::string reply = unknown + EncodeCallResults("r") + unknown;
  EXPECT_THAT(ParseCallResults(reply), IsOkAndHolds(std::string_view("r")));
}

TEST(CallBodyTest, MalformedBytesAreInternalErrors) {
  std::string request =
      EncodeCallBody({.function = "f", .signature = "s", .arguments = "a"});
  request.pop_back();
  EXPECT_THAT(ParseCallBody(request),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("request")));
  std::string reply = EncodeCallResults("results");
  reply.pop_back();
  EXPECT_THAT(ParseCallResults(reply),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("reply")));
  // A field number of zero, a group, and a varint without an end.
  for (const std::string_view malformed :
       {std::string_view("\x00\x00", 2), std::string_view("\x0b\x0c"),
        std::string_view("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")}) {
    EXPECT_THAT(ParseCallBody(malformed),
                StatusIs(absl::StatusCode::kInternal));
    EXPECT_THAT(ParseCallResults(malformed),
                StatusIs(absl::StatusCode::kInternal));
  }
}

}  // namespace
}  // namespace hawser::rpc
