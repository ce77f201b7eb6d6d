// Memory that the ranks of a group share.

#ifndef HAWSER_COLLECTIVES_HOST_REGION_H_
#define HAWSER_COLLECTIVES_HOST_REGION_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace hawser::collectives {

// Layout, in this order, each part on its own cache lines:
//
//   RegionHeader
//   size times RankState
//   size * kSlots slots of slot_bytes bytes: the data that a rank shows to all
//   size * size message rings: RingState and ring_bytes bytes, by sender and
//   receiver
//
// All bytes are zero at first. A view; thread-safe.
struct RegionHeader {
  // Written by the rank that created the memory, and known from the store: the
  // other ranks check that they have mapped the memory of this group.
  uint64_t key[2];

  // The rank that has ended the group, plus 1: the first one wins. Its reason
  // is in its RankState.
  std::atomic<uint32_t> aborted_by;
};

struct alignas(128) RankState {
  // Number of the last step for which the rank has shown its data.
  std::atomic<uint32_t> step;
  // Threads of other ranks that sleep until `step` changes.
  std::atomic<uint32_t> sleepers;
  // 1 once the rank takes part no more.
  std::atomic<uint32_t> left;
  // Rings are read or written again: the doorbell of the rank's messages.
  alignas(64) std::atomic<uint32_t> doorbell;
  std::atomic<uint32_t> doorbell_sleepers;
  // Written before RegionHeader::aborted_by: an absl::StatusCode, and text that
  // ends with a zero byte.
  int32_t abort_code;
  char abort_reason[1000];
};

// A ring of bytes with one sending and one receiving rank.
struct alignas(128) RingState {
  // Bytes written and read so far.
  std::atomic<uint64_t> written;
  alignas(64) std::atomic<uint64_t> read;
};

class Region {
 public:
  struct Layout {
    int size = 1;
    size_t slot_bytes = 0;
    size_t ring_bytes = 0;
  };

  // A rank may show the data of a step while others read that of the one
  // before.
  static constexpr uint32_t kSlots = 2;

  // The slots and rings of a group of `size` ranks: large enough to hide the
  // cost of a step behind its copies, small enough to stay in the caches.
  static Layout LayoutOf(int size);
  static size_t Bytes(const Layout& layout);

  // `memory` has Bytes(layout) bytes, aligned to 128, and must outlive this.
  Region(std::byte* memory, const Layout& layout)
      : memory_(memory), layout_(layout) {}

  const Layout& layout() const { return layout_; }
  RegionHeader& header() const;
  RankState& rank(int rank) const;
  std::byte* slot(int rank, uint32_t step) const;
  RingState& ring(int from, int to) const;
  std::byte* ring_data(int from, int to) const;

 private:
  std::byte* const memory_;
  const Layout layout_;
};

}  // namespace hawser::collectives

#endif  // HAWSER_COLLECTIVES_HOST_REGION_H_
