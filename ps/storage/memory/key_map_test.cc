#include "ps/storage/memory/key_map.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <unordered_map>
#include <vector>

#include "async/testing/status_matchers.h"
#include "gtest/gtest.h"

namespace hawser::ps {
namespace {

using ::hawser::async::IsOk;

void Insert(KeyMap& map, uint64_t key, uint32_t slot) {
  ASSERT_THAT(map.Reserve(1), IsOk());
  map.Insert(key, map.Hash(key), slot);
}

// Find, and the same in two parts, which must agree.
uint32_t Find(const KeyMap& map, uint64_t key) {
  const uint64_t hash = map.Hash(key);
  const uint32_t slot = map.Find(key, hash);
  const uint32_t at_home = map.FindAtHome(key, hash);
  EXPECT_EQ(at_home == KeyMap::kNoSlot ? map.FindElsewhere(key, hash) : at_home,
            slot)
      << key;
  return slot;
}

// How many of the keys 0 to `count` - 1 FindAtHome finds.
uint64_t NumAtHome(const KeyMap& map, uint64_t count) {
  uint64_t num = 0;
  for (uint64_t key = 0; key < count; ++key) {
    if (map.FindAtHome(key, map.Hash(key)) != KeyMap::kNoSlot) ++num;
  }
  return num;
}

TEST(KeyMapTest, EmptyMapFindsNothing) {
  const KeyMap map(1024);
  EXPECT_EQ(Find(map, 0), KeyMap::kNoSlot);
  EXPECT_EQ(map.size(), 0u);
}

TEST(KeyMapTest, FindsSmallestAndLargestKeysAndSlots) {
  KeyMap map(1024);
  Insert(map, 0, 0);
  Insert(map, UINT64_MAX, KeyMap::kNoSlot - 1);
  EXPECT_EQ(Find(map, 0), 0u);
  EXPECT_EQ(Find(map, UINT64_MAX), KeyMap::kNoSlot - 1);
  EXPECT_EQ(Find(map, 1), KeyMap::kNoSlot);
}

// Random insertions and deletions, compared with std::unordered_map, at all
// loads up to the highest, so that keys overflow their buckets and wrap around.
TEST(KeyMapTest, AgreesWithUnorderedMap) {
  std::mt19937_64 random(7);
  KeyMap map(3);
  std::unordered_map<uint64_t, uint32_t> expected;
  std::vector<uint64_t> keys;
  for (int i = 0; i < 200'000; ++i) {
    const bool erase = !keys.empty() && random() % 3 == 0;
    if (erase) {
      const size_t index = random() % keys.size();
      map.Erase(keys[index], map.Hash(keys[index]));
      expected.erase(keys[index]);
      keys[index] = keys.back();
      keys.pop_back();
    } else {
      const uint64_t key = random() % 1'000'000;
      if (expected.contains(key)) continue;
      const auto slot = static_cast<uint32_t>(i);
      Insert(map, key, slot);
      expected[key] = slot;
      keys.push_back(key);
    }
    ASSERT_EQ(map.size(), expected.size());
  }
  for (uint64_t key = 0; key < 1'000'000; ++key) {
    const auto found = expected.find(key);
    ASSERT_EQ(Find(map, key),
              found == expected.end() ? KeyMap::kNoSlot : found->second)
        << key;
  }
  size_t visited = 0;
  map.ForEach([&](uint64_t key, uint32_t slot) {
    ++visited;
    EXPECT_EQ(expected.at(key), slot);
  });
  EXPECT_EQ(visited, expected.size());
}

// All five entries of both buckets, where an entry is found by its position.
TEST(KeyMapTest, FindsEveryEntryOfTheHomeOfAKey) {
  KeyMap map(1024);
  ASSERT_THAT(map.Reserve(200), IsOk());
  // The same home: the hashes of these keys are close to each other.
  std::vector<uint64_t> keys;
  for (uint64_t key = 1; keys.size() < 10; ++key) {
    if (map.Hash(key) >> 57 == 0) keys.push_back(key);
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    map.Insert(keys[i], map.Hash(keys[i]), static_cast<uint32_t>(100 + i));
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    EXPECT_EQ(map.FindAtHome(keys[i], map.Hash(keys[i])), 100 + i) << i;
  }
}

// Keys that differ in one half only are told apart.
TEST(KeyMapTest, ComparesWholeKeys) {
  KeyMap map(1024);
  for (uint64_t i = 0; i < 100; ++i) Insert(map, i << 32 | 7, 1);
  for (uint64_t i = 0; i < 100; ++i) {
    EXPECT_EQ(Find(map, i << 32 | 7), 1u);
    EXPECT_EQ(Find(map, i << 32 | 8), KeyMap::kNoSlot);
    EXPECT_EQ(Find(map, (i + 100) << 32 | 7), KeyMap::kNoSlot);
  }
}

TEST(KeyMapTest, MostKeysAreAtHomeAtTheHighestLoad) {
  KeyMap map(1024);
  uint64_t least = 100;
  for (uint64_t key = 0; key < 300'000; ++key) {
    const bool grows = map.size() * 100 >= map.num_entries() * 80 - 100;
    if (key > 10'000 && grows) {
      least = std::min(least, NumAtHome(map, key) * 100 / key);
    }
    Insert(map, key, static_cast<uint32_t>(key));
  }
  EXPECT_GE(least, 85u);
}

TEST(KeyMapTest, LargeMapTakesLessThan18BytesPerKey) {
  KeyMap map(1024);
  size_t most = 0;
  for (uint64_t key = 0; key < 1'000'000; ++key) {
    Insert(map, key, static_cast<uint32_t>(key));
    if (key > 500'000) most = std::max(most, map.bytes() * 100 / map.size());
  }
  EXPECT_LT(most, 1800u);
}

TEST(KeyMapTest, ReservedRoomNeedsNoMoreMemory) {
  KeyMap map(1024);
  ASSERT_THAT(map.Reserve(100'000), IsOk());
  const size_t bytes = map.bytes();
  for (uint64_t key = 0; key < 100'000; ++key) Insert(map, key, 1);
  EXPECT_EQ(map.bytes(), bytes);
}

}  // namespace
}  // namespace hawser::ps
