#include "net/server/insecure_network_warning.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "async/testing/simulated_clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::net {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(InsecureNetworkWarningTest, WarnsNowAndEachMinute) {
  auto owned = std::make_unique<async::SimulatedClock>();
  async::SimulatedClock& clock = *owned;
  // Returns the stderr output of `act`.
  const auto written = [](auto act) {
    testing::internal::CaptureStderr();
    act();
    return testing::internal::GetCapturedStderr();
  };
  std::optional<InsecureNetworkWarning> warning;
  const auto warns = AllOf(HasSubstr("WARNING: 0.0.0.0:7 is open"),
                           HasSubstr("allow_insecure_network"));
  EXPECT_THAT(written([&] { warning.emplace("0.0.0.0:7", std::move(owned)); }),
              warns);
  for (int minute = 0; minute < 3; ++minute) {
    EXPECT_THAT(written([&] { clock.AdvanceBy(absl::Seconds(59)); }),
                IsEmpty());
    EXPECT_THAT(written([&] { clock.AdvanceBy(absl::Seconds(1)); }), warns);
  }
  EXPECT_THAT(written([&] { warning.reset(); }), IsEmpty());
}

TEST(InsecureNetworkWarningTest, EndsWhileItsClockRuns) {
  testing::internal::CaptureStderr();
  { InsecureNetworkWarning warning("0.0.0.0:7"); }
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("WARNING"));
}

}  // namespace
}  // namespace hawser::net
