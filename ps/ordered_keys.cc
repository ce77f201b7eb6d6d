#include "ps/ordered_keys.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

#include "ps/storage/key_hash.h"

namespace hawser::ps {
namespace {

struct HashedKey {
  uint64_t hash;
  uint32_t position;
};

// Sorts a few elements.
void InsertionSort(HashedKey* begin, HashedKey* end) {
  for (HashedKey* next = begin + 1; next < end; ++next) {
    const HashedKey moved = *next;
    HashedKey* hole = next;
    for (; hole > begin && moved.hash < hole[-1].hash; --hole) {
      *hole = hole[-1];
    }
    *hole = moved;
  }
}

bool IsInOrder(std::span<const uint64_t> keys) {
  uint64_t previous = 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    const uint64_t hash = HashKey(keys[i]);
    if (i > 0 && hash <= previous) return false;
    previous = hash;
  }
  return true;
}

}  // namespace

OrderedKeys::OrderedKeys(std::span<const uint64_t> keys)
    : in_order_(IsInOrder(keys)) {
  if (in_order_) {
    keys_.assign(keys.begin(), keys.end());
    positions_.resize(keys.size());
    std::iota(positions_.begin(), positions_.end(), 0u);
  } else {
    Sort(keys);
  }
}

// Steps:
//   1. Count the keys whose hashes begin with the same bits, as many bits as
//      there are about as many values as keys.
//   2. Move each key to the place of its group.
//   3. Sort each group, which has few keys but for repeated ones.
//   4. Number the distinct keys.
void OrderedKeys::Sort(std::span<const uint64_t> keys) {
  const int bits = std::bit_width(keys.size());
  const int shift = 64 - bits;
  std::vector<uint32_t> ends((size_t{1} << bits) + 1);
  for (uint64_t key : keys) ++ends[(HashKey(key) >> shift) + 1];
  for (size_t i = 1; i < ends.size(); ++i) ends[i] += ends[i - 1];
  const auto sorted = std::make_unique_for_overwrite<HashedKey[]>(keys.size());
  // Afterwards, ends[g] is the end of group g.
  for (size_t i = 0; i < keys.size(); ++i) {
    const uint64_t hash = HashKey(keys[i]);
    sorted[ends[hash >> shift]++] = {hash, static_cast<uint32_t>(i)};
  }
  constexpr size_t kFew = 24;
  for (size_t begin = 0, g = 0; g + 1 < ends.size(); begin = ends[g++]) {
    const size_t count = ends[g] - begin;
    HashedKey* const group = &sorted[begin];
    if (count <= 1) continue;
    if (count <= kFew) {
      InsertionSort(group, group + count);
    } else {
      std::sort(group, group + count,
                [](const auto& a, const auto& b) { return a.hash < b.hash; });
    }
  }
  positions_.resize(keys.size());
  keys_.reserve(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    const HashedKey& next = sorted[i];
    if (i == 0 || next.hash != sorted[i - 1].hash) {
      keys_.push_back(keys[next.position]);
    }
    positions_[next.position] = static_cast<uint32_t>(keys_.size() - 1);
  }
}

size_t OrderedKeys::CountBelow(int64_t shard, int64_t num_shards) const {
  const auto end =
      std::partition_point(keys_.begin(), keys_.end(), [&](uint64_t key) {
        return SplitHash(HashKey(key), static_cast<uint32_t>(num_shards)).part <
               shard;
      });
  return static_cast<size_t>(end - keys_.begin());
}

}  // namespace hawser::ps
