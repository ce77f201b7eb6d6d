#include "ps/ordered_keys.h"

#include <cstdint>
#include <random>
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "ps/storage/key_hash.h"

namespace hawser::ps {
namespace {

void ExpectOrdered(const std::vector<uint64_t>& keys) {
  const OrderedKeys ordered(keys);
  EXPECT_EQ(ordered.keys().size(),
            std::set<uint64_t>(keys.begin(), keys.end()).size());
  for (size_t i = 1; i < ordered.keys().size(); ++i) {
    ASSERT_LT(HashKey(ordered.keys()[i - 1]), HashKey(ordered.keys()[i]));
  }
  ASSERT_EQ(ordered.positions().size(), keys.size());
  bool in_order = true;
  for (size_t i = 0; i < keys.size(); ++i) {
    ASSERT_EQ(ordered.keys()[ordered.positions()[i]], keys[i]);
    in_order = in_order && ordered.positions()[i] == i;
  }
  EXPECT_EQ(ordered.in_order(), in_order);
}

TEST(OrderedKeysTest, ListsOfAllLengths) {
  std::mt19937_64 random(5);
  for (size_t length : {0, 1, 2, 3, 10, 100, 5000}) {
    for (uint64_t distinct : {uint64_t{1}, uint64_t{7}, UINT64_MAX}) {
      std::vector<uint64_t> keys(length);
      for (uint64_t& key : keys) key = random() % distinct;
      ExpectOrdered(keys);
    }
  }
}

TEST(OrderedKeysTest, OrderedListStaysAsItIs) {
  std::vector<uint64_t> keys(1000);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = i;
  const OrderedKeys once(keys);
  EXPECT_FALSE(once.in_order());
  const std::vector<uint64_t> sorted(once.keys().begin(), once.keys().end());
  EXPECT_TRUE(OrderedKeys(sorted).in_order());
  ExpectOrdered(sorted);
}

TEST(OrderedKeysTest, CountsTheKeysBelowAShard) {
  std::vector<uint64_t> keys(1000);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = i;
  const OrderedKeys ordered(keys);
  for (int64_t shard : {0, 1, 5, 9, 10}) {
    size_t expected = 0;
    for (uint64_t key : keys) {
      expected += SplitHash(HashKey(key), 10).part < shard ? 1 : 0;
    }
    EXPECT_EQ(ordered.CountBelow(shard, 10), expected);
  }
}

}  // namespace
}  // namespace hawser::ps
