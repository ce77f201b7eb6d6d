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
  RenewHealthy(3, leases);
  EXPECT_THAT(leases.Tick(), ElementsAre("dead"));
}

}  // namespace
}  // namespace hawser::store::internal
