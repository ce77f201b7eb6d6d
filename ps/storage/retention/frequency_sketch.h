// Estimates of how often keys were seen, in bounded memory.

#ifndef HAWSER_PS_STORAGE_RETENTION_FREQUENCY_SKETCH_H_
#define HAWSER_PS_STORAGE_RETENTION_FREQUENCY_SKETCH_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "ps/storage/memory/memory_block.h"

namespace hawser::ps {

// A count-min sketch (Cormode and Muthukrishnan, 2005) with conservative
// updates, whose counters age (TinyLFU: Einziger, Friedman and Manes, 2017). A
// key has four counters of 4 bits, in one cache line; its count is their
// minimum, which other keys can only raise. Each addition ages a few counters:
// a count is halved once in `window` additions.
//
// Error: if all keys of a window are distinct, fewer than one in twenty of
// further keys are counted too high, mostly by one; with repeated keys fewer
// are. Counts are too low only by halving.
//
// Thread-compatible.
class FrequencySketch {
 public:
  static constexpr uint32_t kMaxCount = 15;

  // Takes 4 bytes for each addition of the window, from Allocate on.
  explicit FrequencySketch(size_t window);

  // Call before Add; does nothing the second time. kResourceExhausted: out of
  // memory.
  absl::Status Allocate();

  // Counts the key with the uniform hash `hash`, and returns its count, at most
  // kMaxCount.
  uint32_t Add(uint64_t hash);

  size_t bytes() const { return memory_.bytes(); }

 private:
  // Counters of 32 keys or more.
  struct alignas(64) Block {
    uint64_t words[8];
  };

  Block* blocks() const { return reinterpret_cast<Block*>(memory_.data()); }
  void Age();

  const uint32_t num_blocks_;
  MemoryBlock memory_;
  uint64_t additions_ = 0;
  uint32_t next_to_age_ = 0;
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_STORAGE_RETENTION_FREQUENCY_SKETCH_H_
