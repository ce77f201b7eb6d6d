// Cache lines of a KeyMap.

#ifndef HAWSER_PS_STORAGE_MEMORY_KEY_BUCKET_H_
#define HAWSER_PS_STORAGE_MEMORY_KEY_BUCKET_H_

#include <cstdint>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "absl/base/attributes.h"
#include "ps/storage/prefetch.h"

namespace hawser::ps {

// Slots are stored plus one: zeroed memory is an empty bucket. The key of an
// empty entry is 0, which is also the key of one row.
struct alignas(64) KeyBucket {
  static constexpr int kEntries = 5;

  // The index of the entry with `key`, or -1. Compares all entries, because a
  // branch for each would be mispredicted.
  int EntryOf(uint64_t key) const {
    unsigned found = 0;
#pragma GCC unroll 5
    for (int i = 0; i < kEntries; ++i) {
      found |= static_cast<unsigned>(keys[i] == key) << i;
    }
    while (found != 0) {
      const int entry = __builtin_ctz(found);
      if (slots[entry] != 0) return entry;
      found &= found - 1;
    }
    return -1;
  }

  uint64_t keys[kEntries];
  uint32_t slots[kEntries];
  // Number of keys that are in a later bucket of their sequence.
  uint32_t passed;
};
static_assert(sizeof(KeyBucket) == 64);

// Two buckets side by side.
struct KeyBucketPair {
  // The stored slot of `key`, or 0. May be 0 for the key 0 if there is an empty
  // entry. No branch depends on which bucket has the key.
  uint32_t StoredSlotOf(uint64_t key) const {
    // Position of an entry's slot among the 32-bit words of the pair, by its
    // bit in `found`. The last is for no entry.
    static constexpr uint8_t kSlotWords[] = {10, 11, 12, 13, 26, 27,
                                             28, 29, 14, 30, 14};
    const unsigned found = EntriesOf(key);
    const int first = __builtin_ctz(found | (1u << 20)) / 2;
    const auto* const words = reinterpret_cast<const uint32_t*>(buckets);
    return found == 0 ? 0 : words[kSlotWords[first]];
  }

  // Loads both to the cache. Inlined: see prefetch.h.
  ABSL_ATTRIBUTE_ALWAYS_INLINE void Prefetch() const {
    for (const KeyBucket& bucket : buckets) PrefetchLine(&bucket);
  }

  KeyBucket buckets[2];

 private:
  // The entries with `key`: bits 0, 2, 4 and 6 for the first four of the first
  // bucket, 8 to 14 for those of the second, 16 and 18 for the last of both.
  unsigned EntriesOf(uint64_t key) const {
#if defined(__x86_64__)
    const __m128i wanted = _mm_set1_epi64x(static_cast<int64_t>(key));
    // Compares the halves of two keys: -1 if they are equal.
    const auto equal = [&](const uint64_t* two) {
      return _mm_cmpeq_epi32(
          _mm_load_si128(reinterpret_cast<const __m128i*>(two)), wanted);
    };
    const __m128i first =
        _mm_packs_epi32(equal(buckets[0].keys), equal(buckets[0].keys + 2));
    const __m128i second =
        _mm_packs_epi32(equal(buckets[1].keys), equal(buckets[1].keys + 2));
    const __m128i last = _mm_cmpeq_epi32(
        _mm_set_epi64x(static_cast<int64_t>(buckets[1].keys[4]),
                       static_cast<int64_t>(buckets[0].keys[4])),
        wanted);
    const auto halves =
        static_cast<unsigned>(
            _mm_movemask_epi8(_mm_packs_epi16(first, second))) |
        static_cast<unsigned>(_mm_movemask_ps(_mm_castsi128_ps(last))) << 16;
    return halves & (halves >> 1) & 0x55555u;
#else
    unsigned found = 0;
    for (int i = 0; i < 4; ++i) {
      found |= static_cast<unsigned>(buckets[0].keys[i] == key) << (2 * i);
      found |= static_cast<unsigned>(buckets[1].keys[i] == key) << (2 * i + 8);
    }
    found |= static_cast<unsigned>(buckets[0].keys[4] == key) << 16;
    return found | static_cast<unsigned>(buckets[1].keys[4] == key) << 18;
#endif
  }
};
static_assert(sizeof(KeyBucketPair) == 128);

}  // namespace hawser::ps

#endif  // HAWSER_PS_STORAGE_MEMORY_KEY_BUCKET_H_
