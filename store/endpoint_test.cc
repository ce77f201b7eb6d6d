#include "store/endpoint.h"

#include <string>

#include "absl/status/status.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::store {
namespace {

using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::HasSubstr;

TEST(EndpointTest, NamesAndAddressesRoundTrip) {
  const struct {
    std::string text;
    Endpoint endpoint;
  } kCases[] = {
      {"127.0.0.1:29500", {.host = "127.0.0.1", .port = 29500}},
      {"node-7.cluster_a.example:0",
       {.host = "node-7.cluster_a.example", .port = 0}},
      {"[::1]:65535", {.host = "::1", .port = 65535}},
      {"[fe80::1%eth0]:80", {.host = "fe80::1%eth0", .port = 80}},
  };
  for (const auto& test : kCases) {
    EXPECT_THAT(ParseEndpoint(test.text), IsOkAndHolds(test.endpoint));
    EXPECT_EQ(ToString(test.endpoint), test.text);
  }
}

TEST(EndpointTest, MalformedTextIsRejectedWithTheReason) {
  const struct {
    std::string text;
    std::string why;
  } kCases[] = {
      {"", "host:port"},         {"host", "host:port"},
      {"host:", "port"},         {"host:65536", "65535"},
      {"host:-1", "65535"},      {"host:1x", "number"},
      {"host: 1", "number"},     {":1", "host before the port is missing"},
      {"::1:80", "brackets"},    {"[::1]", "port"},
      {"[host]:1", "IPv6"},      {"[]:1", "IPv6"},
      {"a/b:1", "character"},    {std::string("a\0b:1", 5), "character"},
      {"user@h:1", "character"},
  };
  for (const auto& test : kCases) {
    EXPECT_THAT(
        ParseEndpoint(test.text),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(test.why)))
        << test.text;
  }
}

}  // namespace
}  // namespace hawser::store
