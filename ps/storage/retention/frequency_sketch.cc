#include "ps/storage/retention/frequency_sketch.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/status_macros.h"
#include "ps/storage/key_hash.h"
#include "ps/storage/memory/memory_block.h"

namespace hawser::ps {
namespace {

// Four counters of each fill half of a block's 128.
constexpr size_t kAdditionsPerBlock = 16;
constexpr size_t kCountersPerKey = 4;

}  // namespace

FrequencySketch::FrequencySketch(size_t window)
    : num_blocks_(static_cast<uint32_t>(
          std::max<size_t>(window / kAdditionsPerBlock, 1))) {}

absl::Status FrequencySketch::Allocate() {
  if (memory_.data() != nullptr) return absl::OkStatus();
  ASSIGN_OR_RETURN(memory_, MemoryBlock::Allocate(num_blocks_ * sizeof(Block)));
  return absl::OkStatus();
}

uint32_t FrequencySketch::Add(uint64_t hash) {
  const HashSplit split = SplitHash(hash, num_blocks_);
  Block& block = blocks()[split.part];
  const uint64_t choices = HashKey(split.rest);
  uint64_t* words[kCountersPerKey];
  int shifts[kCountersPerKey];
  uint64_t least = kMaxCount;
  for (size_t i = 0; i < kCountersPerKey; ++i) {
    // One of the 32 counters in two words.
    const uint64_t counter = choices >> (5 * i) & 31;
    words[i] = &block.words[2 * i + counter / 16];
    shifts[i] = static_cast<int>(counter % 16 * 4);
    least = std::min(least, *words[i] >> shifts[i] & 15);
  }
  if (least < kMaxCount) {
    for (size_t i = 0; i < kCountersPerKey; ++i) {
      if ((*words[i] >> shifts[i] & 15) != least) continue;
      *words[i] += uint64_t{1} << shifts[i];
    }
    ++least;
  }
  if (++additions_ % kAdditionsPerBlock == 0) Age();
  return static_cast<uint32_t>(least);
}

void FrequencySketch::Age() {
  for (uint64_t& word : blocks()[next_to_age_].words) {
    word = word >> 1 & 0x7777777777777777u;
  }
  if (++next_to_age_ == num_blocks_) next_to_age_ = 0;
}

}  // namespace hawser::ps
