#include "rpc/testing/fakes/simulated_watches.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "async/future.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "store/hash/store.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::ElementsAre;

using Watch = async::Future<std::vector<std::string>>;

TEST(SimulatedWatchesTest, WatchIsForwarded) {
  store::HashStore target;
  const auto watches = std::make_shared<SimulatedWatches>(&target);
  EXPECT_THAT(target.Set("k", "1"), IsOk());
  const Watch watch = watches->Start({{"k", "1"}});
  EXPECT_FALSE(watch.ready());
  EXPECT_THAT(target.Set("k", "2"), IsOk());
  ASSERT_TRUE(watch.ready());
  EXPECT_THAT(watch.Wait(), IsOkAndHolds(ElementsAre("2")));
}

TEST(SimulatedWatchesTest, PartitionHoldsAWatchBackUntilItHeals) {
  store::HashStore target;
  const auto watches = std::make_shared<SimulatedWatches>(&target);
  const Watch before = watches->Start({{"k", ""}});
  watches->SetPartitioned(true);
  const Watch during = watches->Start({{"k", ""}});
  EXPECT_THAT(target.Set("k", "1"), IsOk());
  EXPECT_FALSE(before.ready());
  EXPECT_FALSE(during.ready());
  EXPECT_THAT(target.Set("k", "2"), IsOk());
  watches->SetPartitioned(false);
  ASSERT_TRUE(before.ready());
  ASSERT_TRUE(during.ready());
  EXPECT_THAT(before.Wait(), IsOkAndHolds(ElementsAre("2")));
  EXPECT_THAT(during.Wait(), IsOkAndHolds(ElementsAre("2")));
}

TEST(SimulatedWatchesTest, ChangeUndoneDuringAPartitionIsNotSeen) {
  store::HashStore target;
  const auto watches = std::make_shared<SimulatedWatches>(&target);
  const Watch watch = watches->Start({{"k", ""}});
  watches->SetPartitioned(true);
  EXPECT_THAT(target.Set("k", "1"), IsOk());
  EXPECT_THAT(target.Delete("k"), IsOkAndHolds(true));
  watches->SetPartitioned(false);
  EXPECT_FALSE(watch.ready());
  EXPECT_THAT(target.Set("k", "2"), IsOk());
  EXPECT_THAT(watch.Wait(), IsOkAndHolds(ElementsAre("2")));
}

TEST(SimulatedWatchesTest, CancelAndStopEndWatches) {
  store::HashStore target;
  const auto watches = std::make_shared<SimulatedWatches>(&target);
  const Watch cancelled = watches->Start({{"k", ""}});
  EXPECT_TRUE(cancelled.Cancel());
  const Watch forwarded = watches->Start({{"k", ""}});
  watches->SetPartitioned(true);
  const Watch held_back = watches->Start({{"k", ""}});
  watches->Stop();
  EXPECT_THAT(forwarded.Wait(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(held_back.Wait(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(watches->Start({{"k", ""}}).Wait(),
              StatusIs(absl::StatusCode::kCancelled));
}

}  // namespace
}  // namespace hawser::rpc
