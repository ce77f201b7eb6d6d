// Keys of a request in the order in which servers take them.

#ifndef HAWSER_PS_ORDERED_KEYS_H_
#define HAWSER_PS_ORDERED_KEYS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hawser::ps {

// The distinct keys of a list, in the order of their hashes, so that each
// server and each of its partitions gets a range of them. Takes time
// proportional to the number of keys, because hashes are uniform.
//
// Thread-compatible.
class OrderedKeys {
 public:
  // At most 2^32 - 1 keys.
  explicit OrderedKeys(std::span<const uint64_t> keys);

  // The distinct keys.
  std::span<const uint64_t> keys() const { return keys_; }
  // For each key of the list: its position in keys().
  std::span<const uint32_t> positions() const { return positions_; }
  // Whether the list was distinct and in order: position i is i.
  bool in_order() const { return in_order_; }

  // Number of keys in the shards below `shard` of `num_shards`.
  size_t CountBelow(int64_t shard, int64_t num_shards) const;

 private:
  void Sort(std::span<const uint64_t> keys);

  std::vector<uint64_t> keys_;
  std::vector<uint32_t> positions_;
  bool in_order_ = true;
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_ORDERED_KEYS_H_
