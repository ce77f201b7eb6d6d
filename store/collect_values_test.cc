#include "store/collect_values.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "store/hash/store.h"

namespace hawser::store {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(CollectValuesTest, CompletesWithTheLastKey) {
  HashStore store;
  ASSERT_THAT(store.Set("b", "2"), IsOk());
  const auto values = CollectValues(&store, {"a", "b", "c"});
  ASSERT_THAT(store.Set("c", "3"), IsOk());
  EXPECT_FALSE(values.ready());
  ASSERT_THAT(store.Set("a", "1"), IsOk());
  ASSERT_TRUE(values.ready());
  EXPECT_THAT(values.result(), IsOkAndHolds(ElementsAre("1", "2", "3")));
}

TEST(CollectValuesTest, EmptyValuesAreAwaited) {
  HashStore store;
  ASSERT_THAT(store.Set("a", ""), IsOk());
  const auto values = CollectValues(&store, {"a"});
  EXPECT_FALSE(values.ready());
  ASSERT_THAT(store.Set("a", "1"), IsOk());
  EXPECT_TRUE(values.ready());
}

TEST(CollectValuesTest, NoKeysAreCompleteAtOnce) {
  HashStore store;
  EXPECT_THAT(CollectValues(&store, {}).result(), IsOkAndHolds(IsEmpty()));
}

// In the order in which the collection watches them, and in the opposite one.
TEST(CollectValuesTest, MoreKeysThanAreWatchedAtOnce) {
  for (const bool ascending : {true, false}) {
    HashStore store;
    std::vector<std::string> keys;
    for (int i = 0; i < 200; ++i) keys.push_back(absl::StrCat("k", i));
    const auto values = CollectValues(&store, keys);
    for (int i = 0; i < 200; ++i) {
      EXPECT_FALSE(values.ready());
      const std::string& key = keys[ascending ? i : 199 - i];
      ASSERT_THAT(store.Set(key, "value of " + key), IsOk());
    }
    ASSERT_TRUE(values.ready());
    ASSERT_THAT(values.result(), IsOk());
    for (int i = 0; i < 200; ++i) {
      EXPECT_EQ((*values.result())[i], "value of " + keys[i]);
    }
  }
}

TEST(CollectValuesTest, CancelEndsTheWatch) {
  HashStore store;
  const auto values = CollectValues(&store, {"a"});
  EXPECT_TRUE(values.Cancel());
  ASSERT_THAT(store.Set("a", "1"), IsOk());
  EXPECT_THAT(values.result(), StatusIs(absl::StatusCode::kCancelled));
}

TEST(CollectValuesTest, ErrorsOfTheStoreAreReturned) {
  HashStore store;
  EXPECT_THAT(CollectValues(&store, {"a", ""}).result(),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace hawser::store
