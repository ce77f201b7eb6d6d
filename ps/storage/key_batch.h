// Keys of a request.

#ifndef HAWSER_PS_STORAGE_KEY_BATCH_H_
#define HAWSER_PS_STORAGE_KEY_BATCH_H_

#include <cstddef>
#include <cstdint>

namespace hawser::ps {

// Keys of a request, all of one partition. A view.
struct KeyBatch {
  // The position in `keys` of key `i` of the batch.
  uint32_t position(size_t i) const {
    return positions == nullptr ? static_cast<uint32_t>(i) : positions[i];
  }
  uint64_t key(size_t i) const { return keys[position(i)]; }

  const uint64_t* keys = nullptr;
  size_t count = 0;
  // The positions in `keys` of the batch, in order. Null: 0, 1, ...
  const uint32_t* positions = nullptr;
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_STORAGE_KEY_BATCH_H_
