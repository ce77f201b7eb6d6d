// Hash of keys, which determines the virtual shard of a row.

#ifndef HAWSER_PS_STORAGE_KEY_HASH_H_
#define HAWSER_PS_STORAGE_KEY_HASH_H_

#include <cstdint>

namespace hawser::ps {

// The finalizer of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014). Snapshots
// and clients in other languages depend on its values: they never change.
constexpr uint64_t HashKey(uint64_t key) {
  key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9u;
  key = (key ^ (key >> 27)) * 0x94d049bb133111ebu;
  return key ^ (key >> 31);
}

// The key that has this hash: every number is the hash of one key.
constexpr uint64_t KeyWithHash(uint64_t hash) {
  hash = (hash ^ (hash >> 31) ^ (hash >> 62)) * 0x319642b2d24d8ec3u;
  hash = (hash ^ (hash >> 27) ^ (hash >> 54)) * 0x96de1b173f119089u;
  return hash ^ (hash >> 30) ^ (hash >> 60);
}

// The key of chunk `index` of the `count` chunks of a dense table, which have
// evenly spaced hashes: (index + 1/2) * 2^64 / count.
constexpr uint64_t KeyOfChunk(int64_t index, int64_t count) {
  __extension__ using Wide = unsigned __int128;
  return KeyWithHash(static_cast<uint64_t>(
      ((Wide{2} * static_cast<uint64_t>(index) + 1) << 63) /
      static_cast<uint64_t>(count)));
}

// One of `parts` equal ranges of hashes, and the position in it: again a number
// that is uniform in [0, 2^64), so that it can be split further.
struct HashSplit {
  uint32_t part;
  uint64_t rest;
};

constexpr HashSplit SplitHash(uint64_t hash, uint32_t parts) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = Wide{hash} * parts;
  return {static_cast<uint32_t>(product >> 64), static_cast<uint64_t>(product)};
}

}  // namespace hawser::ps

#endif  // HAWSER_PS_STORAGE_KEY_HASH_H_
