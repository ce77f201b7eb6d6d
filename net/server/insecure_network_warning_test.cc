#include "net/server/insecure_network_warning.h"

#include <memory>
#include <optional>
#include <utility>

#include "absl/time/time.h"
#include "async/testing/simulated_clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "telemetry/testing/recorded_log.h"

namespace hawser::net {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(InsecureNetworkWarningTest, WarnsNowAndEachMinute) {
  auto owned = std::make_unique<async::SimulatedClock>();
  async::SimulatedClock& clock = *owned;
  // Returns what `act` logs.
  const auto logged = [](auto act) {
    const telemetry::RecordedLog log;
    act();
    return log.messages();
  };
  std::optional<InsecureNetworkWarning> warning;
  const auto warns = ElementsAre(AllOf(HasSubstr("0.0.0.0:7 is open"),
                                       HasSubstr("allow_insecure_network")));
  EXPECT_THAT(logged([&] { warning.emplace("0.0.0.0:7", std::move(owned)); }),
              warns);
  for (int minute = 0; minute < 3; ++minute) {
    EXPECT_THAT(logged([&] { clock.AdvanceBy(absl::Seconds(59)); }), IsEmpty());
    EXPECT_THAT(logged([&] { clock.AdvanceBy(absl::Seconds(1)); }), warns);
  }
  EXPECT_THAT(logged([&] { warning.reset(); }), IsEmpty());
}

TEST(InsecureNetworkWarningTest, EndsWhileItsClockRuns) {
  const telemetry::RecordedLog log;
  { InsecureNetworkWarning warning("0.0.0.0:7"); }
  EXPECT_THAT(log.messages(), SizeIs(1));
}

}  // namespace
}  // namespace hawser::net
