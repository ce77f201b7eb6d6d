#include "launch/network_interface.h"

#include "absl/status/status.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::launch {
namespace {

using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(NetworkInterfaceTest, LoopbackHasItsIpV4Address) {
  EXPECT_THAT(AddressOfInterface("lo"), IsOkAndHolds("127.0.0.1"));
}

TEST(NetworkInterfaceTest, ErrorForUnknownNameListsTheInterfaces) {
  EXPECT_THAT(AddressOfInterface("nosuch0"),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("nosuch0"), HasSubstr("lo"))));
}

}  // namespace
}  // namespace hawser::launch
