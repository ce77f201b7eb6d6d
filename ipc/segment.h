// The memory that the two ends of a connection share.

#ifndef HAWSER_IPC_SEGMENT_H_
#define HAWSER_IPC_SEGMENT_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "fs/unique_fd.h"
#include "ipc/byte_ring.h"

namespace hawser::rpc {

// Bytes of frames in one direction; a power of two.
inline constexpr size_t kRingBytes = size_t{256} << 10;
// How many messages may refer to their sender's memory at once.
inline constexpr size_t kNumSlots = 4096;

// One direction. The sender increments a message's slot before it lets go of
// the memory that the message refers to.
struct SegmentHalf {
  RingControl control;
  std::array<std::atomic<uint64_t>, kNumSlots> slots;
  std::array<char, kRingBytes> bytes;
};
struct SegmentLayout {
  SegmentHalf to_server;
  SegmentHalf to_client;
};

// A mapping of a sealed memfd: neither end can make the other's mapping
// invalid, nothing is left behind in a file system, and the last of the two
// processes takes it along. Pages are used when they are written first.
class Segment {
 public:
  // A new one, and the descriptor to send to the peer. kResourceExhausted or
  // kUnavailable, naming what failed.
  static absl::StatusOr<std::pair<std::shared_ptr<Segment>, UniqueFd>> Create();
  // Of a descriptor that a peer sent. kInvalidArgument: it is not a memfd of
  // that size, sealed against changes of it.
  static absl::StatusOr<std::shared_ptr<Segment>> Map(const UniqueFd& fd);

  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  SegmentLayout& layout() const { return *layout_; }

 private:
  explicit Segment(SegmentLayout* layout) : layout_(layout) {}

  SegmentLayout* const layout_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_IPC_SEGMENT_H_
