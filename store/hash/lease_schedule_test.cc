#include "store/hash/lease_schedule.h"

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::store::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const absl::Duration kLifetime = 10 * LeaseSchedule::kTick;
// The tick in which a lease begins counts in part only.
constexpr int kTicks = 11;

// The owners of these leases are healthy.
void RenewHealthy(int count, LeaseSchedule& leases) {
  for (int i = 0; i < count; ++i) {
    leases.Renew("healthy" + std::to_string(i), kLifetime);
  }
}

// Returns the ticks after which the first of `num_dead` leases expires that are
// never renewed, beside others that are renewed in every tick. All of them must
// expire together.
int TicksOfDead(int num_dead, int num_healthy) {
  LeaseSchedule leases;
  for (int i = 0; i < num_dead; ++i) {
    leases.Renew("dead" + std::to_string(i), kLifetime);
  }
  for (int ticks = 1; ticks < 100; ++ticks) {
    RenewHealthy(num_healthy, leases);
    const std::vector<std::string> expired = leases.Tick();
    if (expired.empty()) continue;
    EXPECT_EQ(expired.size(), static_cast<size_t>(num_dead));
    return ticks;
  }
  return 0;
}

TEST(LeaseScheduleTest, LeaseExpiresAtItsLifetime) {
  LeaseSchedule leases;
  leases.Renew("other", absl::Hours(1));
  leases.Renew("k", kLifetime);
  for (int i = 1; i < kTicks; ++i) EXPECT_THAT(leases.Tick(), IsEmpty()) << i;
  EXPECT_THAT(leases.Tick(), ElementsAre("k"));
  EXPECT_FALSE(leases.empty());
  leases.End("other");
  EXPECT_TRUE(leases.empty());
}

TEST(LeaseScheduleTest, RenewalBeginsTheLifetimeAnew) {
  LeaseSchedule leases;
  leases.Renew("other", absl::Hours(1));
  for (int round = 0; round < 3; ++round) {
    leases.Renew("k", kLifetime);
    for (int i = 1; i < kTicks; ++i) EXPECT_THAT(leases.Tick(), IsEmpty()) << i;
  }
  EXPECT_THAT(leases.Tick(), ElementsAre("k"));
}

TEST(LeaseScheduleTest, RenewalMayChangeTheLifetime) {
  LeaseSchedule leases;
  leases.Renew("other", absl::Hours(1));
  leases.Renew("shorter", 5 * kLifetime);
  leases.Renew("shorter", kLifetime);
  leases.Renew("longer", kLifetime);
  leases.Renew("longer", 2 * kLifetime);
  for (int i = 1; i < kTicks; ++i) EXPECT_THAT(leases.Tick(), IsEmpty()) << i;
  EXPECT_THAT(leases.Tick(), ElementsAre("shorter"));
  for (int i = 1; i < 10; ++i) EXPECT_THAT(leases.Tick(), IsEmpty()) << i;
  EXPECT_THAT(leases.Tick(), ElementsAre("longer"));
}

TEST(LeaseScheduleTest, EndedLeaseDoesNotExpire) {
  LeaseSchedule leases;
  leases.Renew("other", absl::Hours(1));
  leases.Renew("k", kLifetime);
  leases.End("k");
  leases.End("never");
  for (int i = 0; i < 2 * kTicks; ++i) EXPECT_THAT(leases.Tick(), IsEmpty());
}

TEST(LeaseScheduleTest, LeaseCreatedAgainHasALifetimeOfItsOwn) {
  LeaseSchedule leases;
  leases.Renew("other", absl::Hours(1));
  leases.Renew("k", kLifetime);
  for (int i = 0; i < 5; ++i) EXPECT_THAT(leases.Tick(), IsEmpty());
  leases.End("k");
  leases.Renew("k", kLifetime);
  for (int i = 1; i < kTicks; ++i) EXPECT_THAT(leases.Tick(), IsEmpty()) << i;
  EXPECT_THAT(leases.Tick(), ElementsAre("k"));
}

TEST(LeaseScheduleTest, DeadLeaseAmongHealthyOnesExpiresInTime) {
  EXPECT_EQ(TicksOfDead(1, 1), kTicks);
  EXPECT_EQ(TicksOfDead(1, 2), kTicks);
  EXPECT_EQ(TicksOfDead(1, 7), kTicks);
}

TEST(LeaseScheduleTest, SeveralDeadLeasesOfAHealthyJobExpireInTime) {
  EXPECT_EQ(TicksOfDead(2, 1), kTicks);
  EXPECT_EQ(TicksOfDead(3, 1), kTicks);
  EXPECT_EQ(TicksOfDead(6, 2), kTicks);
}

TEST(LeaseScheduleTest, LeasesLiveLongerIfHardlyAnyIsRenewed) {
  EXPECT_EQ(TicksOfDead(1, 0), 4 * kTicks);
  EXPECT_EQ(TicksOfDead(2, 0), 4 * kTicks);
  EXPECT_EQ(TicksOfDead(3, 0), 4 * kTicks);
  EXPECT_EQ(TicksOfDead(8, 0), 4 * kTicks);
  EXPECT_EQ(TicksOfDead(7, 1), 4 * kTicks);
}

TEST(LeaseScheduleTest, RenewalsOfASlowJobEndTheExtension) {
  LeaseSchedule leases;
  leases.Renew("dead", kLifetime);
  RenewHealthy(3, leases);
  for (int i = 0; i < 2 * kTicks; ++i) EXPECT_THAT(leases.Tick(), IsEmpty());
  // They have come late; the next ones are in time.
  RenewHealthy(3, leases);
  EXPECT_THAT(leases.Tick(), IsEmpty());
  RenewHealthy(3, leases);
  EXPECT_THAT(leases.Tick(), ElementsAre("dead"));
}

// Twenty owners, of which one is dead.
class BusyMachineTest : public testing::Test {
 protected:
  // Counts a tick in which the healthy owners renew, and every `slow_gap` ticks
  // three others as well.
  std::vector<std::string> Tick(int slow_gap) {
    RenewHealthy(16, leases_);
    if (++ticks_ % slow_gap == 0) {
      for (const char* name : {"slow1", "slow2", "slow3"}) {
        leases_.Renew(name, kLifetime);
      }
    }
    return leases_.Tick();
  }

  // Counts such ticks until a lease expires, and returns their number.
  int TicksOfDead(int slow_gap) {
    leases_.Renew("dead", kLifetime);
    for (int ticks = 1; ticks < 100; ++ticks) {
      const std::vector<std::string> expired = Tick(slow_gap);
      if (expired.empty()) continue;
      EXPECT_THAT(expired, ElementsAre("dead"));
      return ticks;
    }
    return 0;
  }

  LeaseSchedule leases_;
  int ticks_ = 0;
};

TEST_F(BusyMachineTest, LateRenewalsOfOneInTenExtendLeases) {
  EXPECT_EQ(TicksOfDead(/*slow_gap=*/2), kTicks);
  EXPECT_NEAR(TicksOfDead(/*slow_gap=*/5), 4 * 5, 1);
  EXPECT_NEAR(TicksOfDead(/*slow_gap=*/8), 4 * 8, 1);
  // Nobody is late any more.
  EXPECT_EQ(TicksOfDead(/*slow_gap=*/2), kTicks);
}

TEST_F(BusyMachineTest, PunctualRenewalsEndTheExtension) {
  for (int i = 0; i < 16; ++i) EXPECT_THAT(Tick(/*slow_gap=*/8), IsEmpty());
  leases_.Renew("dead", kLifetime);
  for (int i = 0; i < 24; ++i) EXPECT_THAT(Tick(/*slow_gap=*/8), IsEmpty());
  EXPECT_THAT(Tick(/*slow_gap=*/1), ElementsAre("dead"));
}

}  // namespace
}  // namespace hawser::store::internal
