#include "collectives/host/region.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace hawser::collectives {
namespace {

// Of the parts of a segment and their result: shared_collectives.cc.
constexpr size_t kSlotBytes = size_t{1024} << 10;
// Of all rings of a group.
constexpr size_t kRingsBytes = size_t{64} << 20;
constexpr size_t kMaxRingBytes = size_t{256} << 10;
constexpr size_t kMinRingBytes = size_t{4} << 10;

constexpr size_t kHeaderBytes = 4096;
static_assert(sizeof(RegionHeader) <= kHeaderBytes);
static_assert(std::atomic<uint32_t>::is_always_lock_free);
static_assert(std::atomic<uint64_t>::is_always_lock_free);

size_t RoundToPage(size_t bytes) { return (bytes + 4095) / 4096 * 4096; }

size_t StatesBytes(const Region::Layout& layout) {
  return RoundToPage(static_cast<size_t>(layout.size) * sizeof(RankState));
}

size_t SlotsBytes(const Region::Layout& layout) {
  return static_cast<size_t>(layout.size) * Region::kSlots * layout.slot_bytes;
}

size_t RingBytes(const Region::Layout& layout) {
  return sizeof(RingState) + layout.ring_bytes;
}

}  // namespace

Region::Layout Region::LayoutOf(int size) {
  const auto ranks = static_cast<size_t>(size);
  const size_t ring = kRingsBytes / (ranks * ranks) / 4096 * 4096;
  return {.size = size,
          .slot_bytes = kSlotBytes,
          .ring_bytes = std::clamp(ring, kMinRingBytes, kMaxRingBytes)};
}

size_t Region::Bytes(const Layout& layout) {
  const auto ranks = static_cast<size_t>(layout.size);
  return kHeaderBytes + StatesBytes(layout) + SlotsBytes(layout) +
         ranks * ranks * RingBytes(layout);
}

RegionHeader& Region::header() const {
  return *reinterpret_cast<RegionHeader*>(memory_);
}

RankState& Region::rank(int rank) const {
  return reinterpret_cast<RankState*>(memory_ + kHeaderBytes)[rank];
}

std::byte* Region::slot(int rank, uint32_t step) const {
  const size_t index = static_cast<size_t>(rank) * kSlots + step % kSlots;
  return memory_ + kHeaderBytes + StatesBytes(layout_) +
         index * layout_.slot_bytes;
}

RingState& Region::ring(int from, int to) const {
  const size_t index =
      static_cast<size_t>(from) * static_cast<size_t>(layout_.size) +
      static_cast<size_t>(to);
  std::byte* const rings =
      memory_ + kHeaderBytes + StatesBytes(layout_) + SlotsBytes(layout_);
  return *reinterpret_cast<RingState*>(rings + index * RingBytes(layout_));
}

std::byte* Region::ring_data(int from, int to) const {
  return reinterpret_cast<std::byte*>(&ring(from, to) + 1);
}

}  // namespace hawser::collectives
