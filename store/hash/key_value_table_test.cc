#include "store/hash/key_value_table.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "async/future.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::store::internal {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Values = std::vector<std::string>;

TEST(KeyValueTableTest, WhenPresentReturnsAConsistentSnapshot) {
  KeyValueTable table({});
  async::Future<Values> both = table.WhenPresent({"a", "b"});
  EXPECT_THAT(table.Set("a", "1"), IsOk());
  EXPECT_TRUE(table.Delete("a"));
  EXPECT_THAT(table.Set("b", "2"), IsOk());
  // "a" was present, but never together with "b".
  EXPECT_FALSE(both.ready());
  EXPECT_THAT(table.Set("a", "3"), IsOk());
  EXPECT_THAT(both.Wait(), IsOkAndHolds(ElementsAre("3", "2")));
  EXPECT_THAT(table.WhenPresent({"b", "a"}).Wait(),
              IsOkAndHolds(ElementsAre("2", "3")));
  EXPECT_EQ(table.num_waiting(), 0);
}

TEST(KeyValueTableTest, CancelledWaitsAreForgotten) {
  KeyValueTable table({});
  async::Future<Values> first = table.WhenPresent({"a", "b"});
  async::Future<Values> second = table.WhenPresent({"a"});
  EXPECT_EQ(table.num_waiting(), 2);
  EXPECT_TRUE(first.Cancel());
  EXPECT_EQ(table.num_waiting(), 1);
  EXPECT_THAT(table.Set("a", "1"), IsOk());
  EXPECT_THAT(first.Wait(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(second.Wait(), IsOkAndHolds(ElementsAre("1")));
}

TEST(KeyValueTableTest, DestructionCancelsWaiters) {
  std::optional<KeyValueTable> table(std::in_place, StoreLimits());
  async::Future<Values> waiting = table->WhenPresent({"a"});
  table.reset();
  EXPECT_THAT(waiting.Wait(), StatusIs(absl::StatusCode::kCancelled));
}

TEST(KeyValueTableTest, SingleClientCannotFillTheTable) {
  constexpr size_t kEach = KeyValueTable::kKeyOverheadBytes + 11;
  KeyValueTable table({.max_total_bytes = 4 * kEach},
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

TEST(KeyValueTableTest, CallbackMayUseTheTable) {
  KeyValueTable table({});
  std::string seen;
  table.WhenPresent({"a"}).OnReady([&](const absl::StatusOr<Values>&) {
    seen = *table.Get("a");
    EXPECT_THAT(table.Set("b", "2"), IsOk());
  });
  EXPECT_THAT(table.Set("a", "1"), IsOk());
  EXPECT_EQ(seen, "1");
  EXPECT_THAT(table.Get("b"), testing::Optional(std::string("2")));
}

TEST(KeyValueTableTest, MissingKeepsTheOrder) {
  KeyValueTable table({});
  EXPECT_THAT(table.Set("b", ""), IsOk());
  EXPECT_THAT(table.Missing(std::vector<std::string>{"c", "b", "a"}),
              IsOkAndHolds(ElementsAre("c", "a")));
}

TEST(KeyValueTableTest, KeysWithoutValuesCountTowardsTheTotal) {
  constexpr size_t kKeys = 10;
  // The size of each key with its overhead.
  KeyValueTable table({.max_total_bytes = kKeys * 150});
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
  KeyValueTable table({.max_key_bytes = 4});
  for (const std::string& key : {std::string(), std::string(5, 'k')}) {
    EXPECT_THAT(table.WhenPresent({"a", key}).Wait(),
                StatusIs(absl::StatusCode::kInvalidArgument));
    EXPECT_THAT(table.Missing(std::vector<std::string>{"a", key}),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
  EXPECT_EQ(table.num_waiting(), 0);
}

}  // namespace
}  // namespace hawser::store::internal
