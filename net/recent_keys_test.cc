#include "net/recent_keys.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "async/random_source.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::net {
namespace {

using ::testing::Pointee;

TEST(RecentKeysTest, RemembersTheNewestKeys) {
  RecentKeys<int> keys(2);
  EXPECT_TRUE(keys.Add(1));
  EXPECT_TRUE(keys.Add(2));
  EXPECT_TRUE(keys.Add(3));
  EXPECT_FALSE(keys.Contains(1));
  EXPECT_TRUE(keys.Contains(2));
  EXPECT_TRUE(keys.Contains(3));
  EXPECT_EQ(keys.size(), 2u);
}

TEST(RecentKeysTest, KnownKeyKeepsItsValueAndAge) {
  RecentKeys<int, std::string> keys(2);
  EXPECT_TRUE(keys.Add(1, "one"));
  EXPECT_TRUE(keys.Add(2, "two"));
  EXPECT_FALSE(keys.Add(1, "other"));
  EXPECT_THAT(keys.Find(1), Pointee(std::string("one")));
  EXPECT_EQ(keys.Find(3), nullptr);
  EXPECT_TRUE(keys.Add(3, "three"));
  EXPECT_EQ(keys.Find(1), nullptr);
  EXPECT_THAT(keys.Find(2), Pointee(std::string("two")));
}

TEST(RecentKeysTest, TouchedKeyIsTheNewest) {
  RecentKeys<int, std::string> keys(2);
  keys.Add(1, "one");
  keys.Add(2, "two");
  EXPECT_THAT(keys.Touch(1), Pointee(std::string("one")));
  EXPECT_EQ(keys.Touch(3), nullptr);
  keys.Add(3, "three");
  EXPECT_TRUE(keys.Contains(1));
  EXPECT_FALSE(keys.Contains(2));
}

TEST(RecentKeysTest, ErasedKeyIsNewAgain) {
  RecentKeys<int> keys(2, 20);
  keys.Add(1, {}, 15);
  keys.Erase(1);
  keys.Erase(2);
  EXPECT_EQ(keys.size(), 0u);
  EXPECT_TRUE(keys.Add(1, {}, 5));
  // The bytes of the erased entry are free.
  EXPECT_TRUE(keys.Add(2, {}, 15));
  EXPECT_TRUE(keys.Contains(1));
}

TEST(RecentKeysTest, BytesAreLimited) {
  RecentKeys<int> keys(100, 20);
  keys.Add(1, {}, 10);
  keys.Add(2, {}, 10);
  keys.Add(3);
  EXPECT_EQ(keys.size(), 3u);
  keys.Add(4, {}, 11);
  EXPECT_FALSE(keys.Contains(1));
  EXPECT_FALSE(keys.Contains(2));
  EXPECT_TRUE(keys.Contains(3));
  EXPECT_TRUE(keys.Contains(4));
  // Too large even alone.
  EXPECT_TRUE(keys.Add(5, {}, 21));
  EXPECT_EQ(keys.size(), 0u);
}

TEST(RecentKeysTest, WithoutCapacityNothingIsRemembered) {
  RecentKeys<int> keys(0);
  EXPECT_TRUE(keys.Add(1));
  EXPECT_TRUE(keys.Add(1));
  EXPECT_EQ(keys.size(), 0u);
}

TEST(RecentKeysTest, ValuesMayBeMoveOnly) {
  RecentKeys<int, std::unique_ptr<int>> keys(1);
  keys.Add(1, std::make_unique<int>(10));
  EXPECT_THAT(keys.Find(1), Pointee(Pointee(10)));
}

TEST(RecentKeysTest, AgreesWithAQueue) {
  constexpr size_t kMax = 50;
  RecentKeys<uint64_t> keys(kMax);
  std::deque<uint64_t> queue;
  async::RandomSource random(7);
  for (int i = 0; i < 20000; ++i) {
    const uint64_t key = random.Below(100);
    const auto found = std::find(queue.begin(), queue.end(), key);
    ASSERT_EQ(keys.Contains(key), found != queue.end());
    switch (random.Below(3)) {
      case 0:
        ASSERT_EQ(keys.Add(key), found == queue.end());
        if (found == queue.end()) queue.push_back(key);
        break;
      case 1:
        ASSERT_EQ(keys.Touch(key) != nullptr, found != queue.end());
        if (found != queue.end()) {
          queue.erase(found);
          queue.push_back(key);
        }
        break;
      default:
        // Rarer, so that the limit is reached.
        if (random.Below(10) > 0) break;
        keys.Erase(key);
        if (found != queue.end()) queue.erase(found);
    }
    if (queue.size() > kMax) queue.pop_front();
    ASSERT_EQ(keys.size(), queue.size());
  }
}

}  // namespace
}  // namespace hawser::net
