// Memory shared by the two ends of a connection.

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

namespace hawser::ipc {

// Size of the ring of one direction, in bytes; a power of two.
inline constexpr size_t kRingBytes = size_t{256} << 10;
// Number of messages that may refer to their sender's memory at the same time.
inline constexpr size_t kNumSlots = 4096;

// One direction of a connection. The sender increments a message's slot before
// it releases the memory that the message refers to.
struct SegmentHalf {
  RingControl control;
  std::array<std::atomic<uint64_t>, kNumSlots> slots;
  std::array<char, kRingBytes> bytes;
};
struct SegmentLayout {
  SegmentHalf to_server;
  SegmentHalf to_client;
};

// A mapping of a sealed memfd. Neither end can invalidate the other's mapping,
// no file is left behind, and the memory is freed when both processes have
// unmapped it or exited. Pages are allocated on first write.
class Segment {
 public:
  // Creates a segment and returns it with the descriptor to send to the peer.
  // kResourceExhausted or kUnavailable, naming the operation that failed.
  static absl::StatusOr<std::pair<std::shared_ptr<Segment>, fs::UniqueFd>>
  Create();
  // Maps a descriptor received from a peer. kInvalidArgument if it is not a
  // memfd of the expected size, sealed against resizing.
  static absl::StatusOr<std::shared_ptr<Segment>> Map(const fs::UniqueFd& fd);

  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  SegmentLayout& layout() const { return *layout_; }

 private:
  explicit Segment(SegmentLayout* layout) : layout_(layout) {}

  SegmentLayout* const layout_;
};

}  // namespace hawser::ipc

#endif  // HAWSER_IPC_SEGMENT_H_
