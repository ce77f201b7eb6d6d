#include "rpc/identity/advertised_address.h"

#include "absl/status/status.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::HasSubstr;

TEST(AdvertisedAddressTest, DefaultsToTheServingAddress) {
  EXPECT_THAT(AdvertisedAddress("", "127.0.0.1:7"),
              IsOkAndHolds("127.0.0.1:7"));
  EXPECT_THAT(AdvertisedAddress("", "unix:/tmp/x"),
              IsOkAndHolds("unix:/tmp/x"));
  EXPECT_THAT(AdvertisedAddress("node7:80", "0.0.0.0:7"),
              IsOkAndHolds("node7:80"));
}

TEST(AdvertisedAddressTest, PortZeroIsReplacedByTheServingPort) {
  EXPECT_THAT(AdvertisedAddress("node7:0", "0.0.0.0:7"),
              IsOkAndHolds("node7:7"));
  EXPECT_THAT(AdvertisedAddress("[fd00::2]:0", "[::]:7"),
              IsOkAndHolds("[fd00::2]:7"));
  EXPECT_THAT(AdvertisedAddress("node7:0", "unix:/tmp/x"),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

// Records of workers hold it as text.
TEST(AdvertisedAddressTest, AddressOutsideUtf8IsRefused) {
  const auto refused =
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is not UTF-8"));
  EXPECT_THAT(AdvertisedAddress("", "unix:/tmp/caf\xe9"), refused);
  EXPECT_THAT(AdvertisedAddress("caf\xe9:80", "0.0.0.0:7"), refused);
  EXPECT_THAT(AdvertisedAddress("", "unix:/tmp/caf\xc3\xa9"),
              IsOkAndHolds("unix:/tmp/caf\xc3\xa9"));
}

TEST(AdvertisedAddressTest, WildcardAddressIsRejected) {
  const auto refused = StatusIs(absl::StatusCode::kInvalidArgument,
                                HasSubstr("advertise_address"));
  EXPECT_THAT(AdvertisedAddress("", "0.0.0.0:7"), refused);
  EXPECT_THAT(AdvertisedAddress("", "[::]:7"), refused);
  EXPECT_THAT(AdvertisedAddress("node7", "0.0.0.0:7"),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace hawser::rpc
