// Map from keys to the slots of their rows.

#ifndef HAWSER_PS_STORAGE_MEMORY_KEY_MAP_H_
#define HAWSER_PS_STORAGE_MEMORY_KEY_MAP_H_

#include <cstddef>
#include <cstdint>

#include "absl/base/attributes.h"
#include "absl/status/status.h"
#include "ps/storage/key_hash.h"
#include "ps/storage/memory/key_bucket.h"
#include "ps/storage/memory/memory_block.h"

namespace hawser::ps {

// Open addressing with buckets of five entries, one cache line each. A full
// bucket overflows to the other one of its pair of lines, which processors load
// together, and then to the next pairs. It counts the keys that passed it: a
// look-up ends where that count is zero, and erasing leaves no tombstones.
//
// `hash` is Hash(key), which callers compute once. Thread-compatible.
class KeyMap {
 public:
  static constexpr uint32_t kNoSlot = UINT32_MAX;

  // For keys of any of `num_shards` virtual shards.
  explicit KeyMap(uint32_t num_shards) : num_shards_(num_shards) {}

  // The position of the key within its shard.
  uint64_t Hash(uint64_t key) const {
    return SplitHash(HashKey(key), num_shards_).rest;
  }

  size_t size() const { return size_; }
  // Memory of the buckets.
  size_t bytes() const { return memory_.bytes(); }

  // Loads the pair of buckets of `hash` to the cache. Inlined: see prefetch.h.
  ABSL_ATTRIBUTE_ALWAYS_INLINE void Prefetch(uint64_t hash) const {
    if (num_buckets_ == 0) return;
    PairOf(Home(hash)).Prefetch();
  }

  // Returns the slot of `key`, or kNoSlot.
  uint32_t Find(uint64_t key, uint64_t hash) const {
    if (num_buckets_ == 0) return kNoSlot;
    return FindFrom(Probe(Home(hash), num_buckets_), key);
  }

  // Find in two parts, for callers that look for many keys: FindAtHome reads
  // what Prefetch loads, where most keys are, and takes the same time for each.
  // If it returns kNoSlot, FindElsewhere looks where PrefetchElsewhere loads;
  // no key may have been inserted or erased meanwhile.
  uint32_t FindAtHome(uint64_t key, uint64_t hash) const {
    if (num_buckets_ == 0) return kNoSlot;
    return PairOf(Home(hash)).StoredSlotOf(key) - 1;
  }
  ABSL_ATTRIBUTE_ALWAYS_INLINE void PrefetchElsewhere(uint64_t hash) const {
    if (num_buckets_ == 0) return;
    PairOf(Probe::AfterPair(Home(hash), num_buckets_).index()).Prefetch();
  }
  uint32_t FindElsewhere(uint64_t key, uint64_t hash) const {
    // StoredSlotOf may miss the key 0.
    if (num_buckets_ == 0 || key == 0) return Find(key, hash);
    const uint32_t home = Home(hash);
    if (buckets()[home].passed == 0 || buckets()[home ^ 1].passed == 0) {
      return kNoSlot;
    }
    return FindFrom(Probe::AfterPair(home, num_buckets_), key);
  }

  // Makes room for `count` more keys. kResourceExhausted: out of memory; the
  // map is unchanged.
  absl::Status Reserve(size_t count);

  // Maps `key`, which must not be in the map, to `slot`, which is not kNoSlot.
  // There must be room, by Reserve.
  void Insert(uint64_t key, uint64_t hash, uint32_t slot);

  // Removes `key`, which must be in the map. Returns its slot.
  uint32_t Erase(uint64_t key, uint64_t hash);

  // Entries in the order of their hashes, roughly, for a caller that visits
  // some at a time: 0 to num_entries() - 1, of which some are empty. They move
  // when Reserve needs memory.
  struct Entry {
    uint64_t key;
    // kNoSlot: the entry is empty.
    uint32_t slot;
  };
  size_t num_entries() const { return size_t{num_buckets_} * kEntries; }
  Entry EntryAt(size_t index) const {
    const KeyBucket& bucket = buckets()[index / kEntries];
    return {bucket.keys[index % kEntries], bucket.slots[index % kEntries] - 1};
  }

  // Calls visit(key, slot) for each entry, in no particular order. `visit` must
  // not change the map.
  template <class Visit>
  void ForEach(const Visit& visit) const {
    for (uint32_t i = 0; i < num_buckets_; ++i) {
      const KeyBucket& bucket = buckets()[i];
      for (int entry = 0; entry < kEntries; ++entry) {
        if (bucket.slots[entry] == 0) continue;
        visit(bucket.keys[entry], bucket.slots[entry] - 1);
      }
    }
  }

 private:
  static constexpr int kEntries = KeyBucket::kEntries;

  // The sequence of buckets in which a key is looked for.
  class Probe {
   public:
    Probe(uint32_t home, uint32_t num_buckets)
        : index_(home), num_buckets_(num_buckets) {}

    // Behind the pair of buckets of `home`.
    static Probe AfterPair(uint32_t home, uint32_t num_buckets) {
      Probe probe(home, num_buckets);
      probe.steps_ = 1;
      probe.Next();
      return probe;
    }

    uint32_t index() const { return index_; }
    void Next() {
      if (++steps_ % 2 == 1) {
        index_ ^= 1;
        return;
      }
      index_ = (index_ | 1) + 1;
      if (index_ == num_buckets_) index_ = 0;
    }

   private:
    uint32_t index_;
    const uint32_t num_buckets_;
    uint32_t steps_ = 0;
  };

  KeyBucket* buckets() const {
    return reinterpret_cast<KeyBucket*>(memory_.data());
  }
  const KeyBucketPair& PairOf(uint32_t index) const {
    return reinterpret_cast<const KeyBucketPair*>(memory_.data())[index / 2];
  }
  uint32_t Home(uint64_t hash) const {
    return SplitHash(hash, num_buckets_).part;
  }
  uint32_t FindFrom(Probe probe, uint64_t key) const {
    while (true) {
      const KeyBucket& bucket = buckets()[probe.index()];
      const int entry = bucket.EntryOf(key);
      if (entry >= 0) return bucket.slots[entry] - 1;
      if (bucket.passed == 0) return kNoSlot;
      probe.Next();
    }
  }
  void Place(uint64_t key, uint64_t hash, uint32_t stored_slot);

  uint32_t num_shards_;
  MemoryBlock memory_;
  // Even.
  uint32_t num_buckets_ = 0;
  size_t size_ = 0;
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_STORAGE_MEMORY_KEY_MAP_H_
