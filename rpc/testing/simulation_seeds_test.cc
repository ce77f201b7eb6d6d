#include "rpc/testing/simulation_seeds.h"

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(SimulationSeedsTest, OneSeedOrTheFirstAndTheLast) {
  EXPECT_THAT(ParseSeeds("7"), IsOkAndHolds(SeedRange{7, 7}));
  EXPECT_THAT(ParseSeeds("3-9"), IsOkAndHolds(SeedRange{3, 9}));
}

TEST(SimulationSeedsTest, OtherTextsAreRefusedByName) {
  for (const std::string_view text : {"", "x", "9-3", "1-2-3", "1-", "-5"}) {
    EXPECT_THAT(ParseSeeds(text),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr(std::string(text) + "' are no seeds")));
  }
}

TEST(SimulationSeedsTest, EachSeedIsInOneRange) {
  EXPECT_THAT(Divide({5, 15}, 3), ElementsAre(SeedRange{5, 8}, SeedRange{9, 12},
                                              SeedRange{13, 15}));
  EXPECT_THAT(Divide({5, 6}, 50),
              ElementsAre(SeedRange{5, 5}, SeedRange{6, 6}));
}

}  // namespace
}  // namespace hawser::rpc
