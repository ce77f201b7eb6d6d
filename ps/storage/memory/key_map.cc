#include "ps/storage/memory/key_map.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/check.h"
#include "async/status_macros.h"
#include "ps/storage/memory/key_bucket.h"
#include "ps/storage/memory/memory_block.h"

namespace hawser::ps {
namespace {

// Fills a page.
constexpr size_t kMinBuckets = 64;
// Above it, the map grows by less than its double: the memory matters.
constexpr size_t kLargeBuckets = size_t{1} << 14;
// Of all entries, in percent. With 85, the map is 6 % smaller, and more keys
// are outside of their pair of buckets, whose search is slow: random look-ups
// are 6 % slower.
constexpr size_t kMaxLoad = 80;
constexpr size_t kGrowth = 112;

}  // namespace

absl::Status KeyMap::Reserve(size_t count) {
  const size_t needed =
      ((size_ + count) * 100 + kEntries * kMaxLoad - 1) / (kEntries * kMaxLoad);
  if (needed <= num_buckets_) return absl::OkStatus();
  const size_t old = num_buckets_;
  const size_t grown_buckets = old < kLargeBuckets
                                   ? std::max(kMinBuckets, 2 * old)
                                   : old * kGrowth / 100;
  const size_t wanted = (std::max(needed, grown_buckets) + 1) / 2 * 2;
  if (wanted > UINT32_MAX) {
    return absl::ResourceExhaustedError(
        "a partition of a table is full: use more servers");
  }
  ASSIGN_OR_RETURN(MemoryBlock memory,
                   MemoryBlock::Allocate(wanted * sizeof(KeyBucket)));
  KeyMap grown(num_shards_);
  grown.memory_ = std::move(memory);
  grown.num_buckets_ = static_cast<uint32_t>(wanted);
  ForEach([&](uint64_t key, uint32_t slot) {
    grown.Place(key, Hash(key), slot + 1);
  });
  std::swap(memory_, grown.memory_);
  num_buckets_ = grown.num_buckets_;
  return absl::OkStatus();
}

void KeyMap::Insert(uint64_t key, uint64_t hash, uint32_t slot) {
  HAWSER_CHECK(size_ < size_t{num_buckets_} * kEntries) << "there is room";
  Place(key, hash, slot + 1);
  ++size_;
}

void KeyMap::Place(uint64_t key, uint64_t hash, uint32_t stored_slot) {
  Probe probe(Home(hash), num_buckets_);
  while (true) {
    KeyBucket& bucket = buckets()[probe.index()];
    for (int i = 0; i < kEntries; ++i) {
      if (bucket.slots[i] != 0) continue;
      bucket.keys[i] = key;
      bucket.slots[i] = stored_slot;
      return;
    }
    ++bucket.passed;
    probe.Next();
  }
}

uint32_t KeyMap::Erase(uint64_t key, uint64_t hash) {
  Probe probe(Home(hash), num_buckets_);
  while (true) {
    KeyBucket& bucket = buckets()[probe.index()];
    const int entry = bucket.EntryOf(key);
    if (entry >= 0) {
      bucket.keys[entry] = 0;
      --size_;
      return std::exchange(bucket.slots[entry], 0) - 1;
    }
    HAWSER_CHECK(bucket.passed > 0) << "the key is in the map";
    --bucket.passed;
    probe.Next();
  }
}

}  // namespace hawser::ps
