#include "store/hash/key_value_table.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "async/future.h"
#include "async/testing/simulated_clock.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "store/hash/lease_schedule.h"
#include "store/store.h"
#include "store/store_limits.h"

namespace hawser::store::internal {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Values = std::vector<std::string>;

TEST(KeyValueTableTest, WaitNeedsAllKeysAtTheSameTime) {
  async::SimulatedClock clock;
  KeyValueTable table(&clock, {});
  const async::Future<void> both = table.WhenPresent({"a", "b"});
  EXPECT_THAT(table.Set("a", "1"), IsOk());
  EXPECT_TRUE(table.Delete("a"));
  EXPECT_THAT(table.Set("b", "2"), IsOk());
  // "a" was present, but never together with "b".
  EXPECT_FALSE(both.ready());
  EXPECT_THAT(table.Set("a", "3"), IsOk());
  EXPECT_TRUE(both.ready());
  EXPECT_THAT(both.Wait(), IsOk());
  EXPECT_THAT(table.WhenPresent({"b", "a"}).Wait(), IsOk());
  EXPECT_EQ(table.num_waiting(), 0);
}

TEST(KeyValueTableTest, CancelledWaitsAreForgotten) {
  async::SimulatedClock clock;
  KeyValueTable table(&clock, {});
  const async::Future<void> first = table.WhenPresent({"a", "b"});
  const async::Future<std::string> second = table.WhenValue("a");
  EXPECT_EQ(table.num_waiting(), 2);
  EXPECT_TRUE(first.Cancel());
  EXPECT_EQ(table.num_waiting(), 1);
  EXPECT_THAT(table.Set("a", "1"), IsOk());
  EXPECT_THAT(first.Wait(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(second.Wait(), IsOkAndHolds("1"));
}

// The bytes of a result are admitted before it exists.
TEST(KeyValueTableTest, ResultsAreAdmittedByTheirBytes) {
  async::SimulatedClock clock;
  KeyValueTable table(&clock, {});
  std::vector<size_t> asked;
  const auto admit = [&](size_t bytes) -> absl::Status {
    asked.push_back(bytes);
    if (bytes < 100) return absl::OkStatus();
    return absl::ResourceExhaustedError("too many bytes");
  };
  const auto refused = StatusIs(absl::StatusCode::kResourceExhausted,
                                HasSubstr("too many bytes"));
  const async::Future<std::string> waiting = table.WhenValue("k", admit);
  const async::Future<Values> watching = table.WhenChanged({{"k", ""}}, admit);
  EXPECT_THAT(asked, ElementsAre());
  EXPECT_THAT(table.Set("k", std::string(100, 'v')), IsOk());
  EXPECT_THAT(waiting.Wait(), refused);
  EXPECT_THAT(watching.Wait(), refused);
  EXPECT_EQ(table.num_waiting(), 0);
  EXPECT_THAT(table.WhenValue("k", admit).Wait(), refused);
  EXPECT_THAT(table.WhenChanged({{"k", ""}}, admit).Wait(), refused);
  EXPECT_THAT(asked, ElementsAre(100, 116, 100, 116));
  EXPECT_THAT(table.Set("k", "short"), IsOk());
  EXPECT_THAT(table.WhenValue("k", admit).Wait(), IsOkAndHolds("short"));
}

TEST(KeyValueTableTest, DestructionCancelsWaiters) {
  async::SimulatedClock clock;
  std::optional<KeyValueTable> table(std::in_place, &clock, StoreLimits());
  const async::Future<void> waiting = table->WhenPresent({"a"});
  table.reset();
  EXPECT_THAT(waiting.Wait(), StatusIs(absl::StatusCode::kCancelled));
}

TEST(KeyValueTableTest, SingleClientCannotFillTheTable) {
  constexpr size_t kEach = KeyValueTable::kKeyOverheadBytes + 11;
  async::SimulatedClock clock;
  KeyValueTable table(&clock, {.max_total_bytes = 4 * kEach},
                      /*max_client_bytes=*/2 * kEach);
  const std::string value(10, 'v');
  EXPECT_THAT(table.Set("1", value, "a"), IsOk());
  EXPECT_THAT(table.Set("2", value, "a"), IsOk());
  EXPECT_THAT(table.Set("3", value, "a"),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("keys written by a"),
                             HasSubstr("max_stored_bytes_per_client"))));
  // Its values may change if they do not grow.
  EXPECT_THAT(table.Set("2", std::string(10, 'w'), "a"), IsOk());
  EXPECT_THAT(table.Append("2", "w", "a"),
              StatusIs(absl::StatusCode::kResourceExhausted));
  // Other clients still have space, even to overwrite its keys.
  EXPECT_THAT(table.Set("3", value, "b"), IsOk());
  EXPECT_THAT(table.Set("2", value, "b"), IsOk());
  EXPECT_THAT(table.Set("4", value, "a"), IsOk());
  EXPECT_THAT(table.CompareAndSet("5", "", value, "a"),
              StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_TRUE(table.Delete("1"));
  EXPECT_THAT(table.Add("1", 1, "a"), IsOk());
}

// Only its own bytes are credited to a client that replaces a value.
TEST(KeyValueTableTest, OverwritingCreditsNoBytesOfOthers) {
  constexpr size_t kEach = KeyValueTable::kKeyOverheadBytes + 11;
  async::SimulatedClock clock;
  KeyValueTable table(&clock, {}, /*max_client_bytes=*/2 * kEach);
  const std::string value(10, 'v');
  EXPECT_THAT(table.Set("1", value, "a"), IsOk());
  EXPECT_THAT(table.Set("2", value, "b"), IsOk());
  EXPECT_THAT(table.Set("3", value, "b"), IsOk());
  EXPECT_THAT(table.Set("1", value, "b"),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("keys written by b")));
  // The bytes that "b" takes over are not those of "a" any more.
  EXPECT_TRUE(table.Delete("2"));
  EXPECT_THAT(table.Set("1", value, "b"), IsOk());
  EXPECT_THAT(table.Set("4", value, "a"), IsOk());
  EXPECT_THAT(table.Set("5", value, "a"), IsOk());
  EXPECT_THAT(table.Set("6", value, "b"),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST(KeyValueTableTest, CallbackMayUseTheTable) {
  async::SimulatedClock clock;
  KeyValueTable table(&clock, {});
  std::string seen;
  table.WhenPresent({"a"}).OnReady([&](const absl::Status&) {
    seen = *table.Get("a");
    EXPECT_THAT(table.Set("b", "2"), IsOk());
  });
  EXPECT_THAT(table.Set("a", "1"), IsOk());
  EXPECT_EQ(seen, "1");
  EXPECT_THAT(table.Get("b"), testing::Optional(std::string("2")));
}

TEST(KeyValueTableTest, MissingKeepsTheOrder) {
  async::SimulatedClock clock;
  KeyValueTable table(&clock, {});
  EXPECT_THAT(table.Set("b", ""), IsOk());
  EXPECT_THAT(table.Missing(std::vector<std::string>{"c", "b", "a"}),
              IsOkAndHolds(ElementsAre("c", "a")));
}

TEST(KeyValueTableTest, KeysWithoutValuesCountTowardsTheTotal) {
  constexpr size_t kKeys = 10;
  // The size of each key with its overhead.
  async::SimulatedClock clock;
  KeyValueTable table(&clock, {.max_total_bytes = kKeys * 150});
  for (size_t i = 0; i < kKeys; ++i) {
    EXPECT_THAT(table.Set("k" + std::to_string(i), ""), IsOk());
  }
  EXPECT_THAT(table.Set("kx", ""),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       testing::HasSubstr("10 keys")));
  EXPECT_TRUE(table.Delete("k0"));
  EXPECT_THAT(table.Set("kx", ""), IsOk());
}

TEST(KeyValueTableTest, KeysOfWaitsAndChecksAreBoundedToo) {
  async::SimulatedClock clock;
  KeyValueTable table(&clock, {.max_key_bytes = 4});
  for (const std::string& key : {std::string(), std::string(5, 'k')}) {
    EXPECT_THAT(table.WhenPresent({"a", key}).Wait(),
                StatusIs(absl::StatusCode::kInvalidArgument));
    EXPECT_THAT(table.Missing(std::vector<std::string>{"a", key}),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
  EXPECT_EQ(table.num_waiting(), 0);
}

constexpr absl::Duration kLifetime = absl::Seconds(1);

// Keeps the leases of a test from living longer for lack of renewals.
void AddHealthyLease(KeyValueTable& table) {
  EXPECT_THAT(table.SetLease("healthy", "", absl::Hours(1)), IsOk());
}

TEST(KeyValueTableTest, LeaseEndsUnlessRenewed) {
  async::SimulatedClock clock;
  KeyValueTable table(&clock, {});
  AddHealthyLease(table);
  EXPECT_THAT(table.SetLease("k", "1", kLifetime), IsOk());
  for (int i = 0; i < 5; ++i) {
    clock.AdvanceBy(kLifetime);
    EXPECT_THAT(table.SetLease("k", "2", kLifetime), IsOk());
  }
  clock.AdvanceBy(kLifetime);
  EXPECT_THAT(table.Get("k"), testing::Optional(std::string("2")));
  clock.AdvanceBy(LeaseSchedule::kTick);
  EXPECT_EQ(table.Get("k"), std::nullopt);
  EXPECT_EQ(table.NumKeys(), 1);
}

TEST(KeyValueTableTest, OtherChangesMakeALeasePermanent) {
  async::SimulatedClock clock;
  KeyValueTable table(&clock, {});
  AddHealthyLease(table);
  for (const std::string key : {"set", "add", "append", "swap", "kept"}) {
    EXPECT_THAT(table.SetLease(key, "1", kLifetime), IsOk());
  }
  EXPECT_THAT(table.Set("set", "1"), IsOk());
  EXPECT_THAT(table.Add("add", 1), IsOk());
  EXPECT_THAT(table.Append("append", ""), IsOk());
  EXPECT_THAT(table.CompareAndSet("swap", "1", "1"), IsOk());
  EXPECT_THAT(table.CompareAndSet("kept", "2", "3"), IsOk());
  clock.AdvanceBy(2 * kLifetime);
  EXPECT_EQ(table.Get("kept"), std::nullopt);
  EXPECT_EQ(table.NumKeys(), 5);
}

TEST(KeyValueTableTest, EndedLeasesFreeTheirSpace) {
  constexpr size_t kEach = KeyValueTable::kKeyOverheadBytes + 11;
  async::SimulatedClock clock;
  KeyValueTable table(&clock, {.max_total_bytes = kEach},
                      /*max_client_bytes=*/kEach);
  EXPECT_THAT(table.SetLease("1", std::string(10, 'v'), kLifetime, "a"),
              IsOk());
  EXPECT_THAT(table.Set("2", std::string(10, 'v'), "a"),
              StatusIs(absl::StatusCode::kResourceExhausted));
  clock.AdvanceBy(5 * kLifetime);
  EXPECT_THAT(table.Set("2", std::string(10, 'v'), "a"), IsOk());
}

TEST(KeyValueTableTest, TicksOnlyWhileThereAreLeases) {
  async::SimulatedClock clock;
  KeyValueTable table(&clock, {});
  EXPECT_THAT(table.Set("k", "v"), IsOk());
  EXPECT_EQ(clock.num_timers(), 0u);
  EXPECT_THAT(table.SetLease("a", "", kLifetime), IsOk());
  EXPECT_THAT(table.SetLease("b", "", kLifetime), IsOk());
  EXPECT_EQ(clock.num_timers(), 1u);
  EXPECT_TRUE(table.Delete("a"));
  EXPECT_TRUE(table.Delete("b"));
  clock.AdvanceBy(kLifetime);
  EXPECT_EQ(clock.num_timers(), 0u);
}

TEST(KeyValueTableTest, WatchSeesChangesAndTheEndOfALease) {
  async::SimulatedClock clock;
  KeyValueTable table(&clock, {});
  AddHealthyLease(table);
  EXPECT_THAT(table.SetLease("k", "1", kLifetime), IsOk());
  const auto changed = table.WhenChanged({{"k", "1"}, {"other", ""}});
  const auto gone = table.WhenChanged({{"k", std::nullopt}});
  EXPECT_EQ(table.num_waiting(), 2);
  EXPECT_THAT(table.SetLease("k", "1", kLifetime), IsOk());
  EXPECT_FALSE(changed.ready());
  EXPECT_THAT(table.SetLease("k", "2", kLifetime), IsOk());
  ASSERT_TRUE(changed.ready());
  EXPECT_THAT(changed.Wait(), IsOkAndHolds(ElementsAre("2", "")));
  clock.AdvanceBy(kLifetime);
  EXPECT_FALSE(gone.ready());
  clock.AdvanceBy(LeaseSchedule::kTick);
  ASSERT_TRUE(gone.ready());
  EXPECT_THAT(gone.Wait(), IsOkAndHolds(ElementsAre("")));
  EXPECT_EQ(table.num_waiting(), 0);
}

TEST(KeyValueTableTest, WatchOfOneKeySeveralTimesCompletesOnce) {
  async::SimulatedClock clock;
  KeyValueTable table(&clock, {});
  const auto watch = table.WhenChanged({{"k", ""}, {"k", ""}});
  EXPECT_EQ(table.num_waiting(), 1);
  EXPECT_THAT(table.Set("k", "1"), IsOk());
  EXPECT_THAT(watch.Wait(), IsOkAndHolds(ElementsAre("1", "1")));
  EXPECT_EQ(table.num_waiting(), 0);
}

TEST(KeyValueTableTest, CancelledWatchesAreForgotten) {
  async::SimulatedClock clock;
  std::optional<KeyValueTable> table(std::in_place, &clock, StoreLimits());
  const auto first = table->WhenChanged({{"a", ""}, {"b", ""}});
  const auto second = table->WhenChanged({{"a", ""}});
  EXPECT_EQ(table->num_waiting(), 2);
  EXPECT_TRUE(first.Cancel());
  EXPECT_EQ(table->num_waiting(), 1);
  table.reset();
  EXPECT_THAT(second.Wait(), StatusIs(absl::StatusCode::kCancelled));
}

TEST(KeyValueTableTest, ResultOfAWatchIsBounded) {
  async::SimulatedClock clock;
  KeyValueTable table(&clock, {});
  EXPECT_THAT(table.Set("k", std::string(size_t{1} << 20, 'v')), IsOk());
  const std::vector<WatchedKey> many(64, WatchedKey{"k", ""});
  EXPECT_THAT(table.WhenChanged(many).Wait(),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("64 watched keys")));
  const std::vector<WatchedKey> fewer(63, WatchedKey{"k", ""});
  EXPECT_THAT(table.WhenChanged(fewer).Wait(), IsOk());
}

}  // namespace
}  // namespace hawser::store::internal
