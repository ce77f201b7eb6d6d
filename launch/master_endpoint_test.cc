#include "launch/master_endpoint.h"

#include <cstdlib>

#include "absl/status/status.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "store/endpoint.h"

namespace hawser::launch {
namespace {

using ::hawser::async::StatusIs;
using ::testing::HasSubstr;

class MasterEndpointTest : public ::testing::Test {
 protected:
  MasterEndpointTest() { Clear(); }
  ~MasterEndpointTest() override { Clear(); }

  static void Clear() {
    unsetenv("MASTER_ADDR");
    unsetenv("MASTER_PORT");
  }
};

TEST_F(MasterEndpointTest, OptionsPrecedeTheEnvironmentAndTheDefaults) {
  EXPECT_EQ(*MasterEndpoint(), (store::Endpoint{"127.0.0.1", 29500}));
  setenv("MASTER_ADDR", "fd00::1", 1);
  setenv("MASTER_PORT", "7", 1);
  EXPECT_EQ(*MasterEndpoint(), (store::Endpoint{"fd00::1", 7}));
  EXPECT_EQ(*MasterEndpoint("host"), (store::Endpoint{"host", 7}));
  EXPECT_EQ(*MasterEndpoint("host", 0), (store::Endpoint{"host", 0}));
}

TEST_F(MasterEndpointTest, MalformedPortIsNamed) {
  setenv("MASTER_PORT", "seven", 1);
  EXPECT_THAT(MasterEndpoint(), StatusIs(absl::StatusCode::kInvalidArgument,
                                         HasSubstr("MASTER_PORT is 'seven'")));
  EXPECT_EQ(*MasterEndpoint("", 8), (store::Endpoint{"127.0.0.1", 8}));
}

}  // namespace
}  // namespace hawser::launch
