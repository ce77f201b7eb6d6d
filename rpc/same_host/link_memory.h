// Memory shared by the two ends of a same-host link.

#ifndef HAWSER_RPC_SAME_HOST_LINK_MEMORY_H_
#define HAWSER_RPC_SAME_HOST_LINK_MEMORY_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "fs/unique_fd.h"
#include "ipc/byte_ring.h"
#include "ipc/shared_memory.h"

namespace hawser::rpc {

// Size of the ring of one direction, in bytes; a power of two.
inline constexpr size_t kRingBytes = size_t{256} << 10;
// Number of messages that may refer to their sender's memory at the same time.
inline constexpr size_t kNumSlots = 4096;
// Of the copies of chunks of one direction.
inline constexpr size_t kHeapBytes = size_t{4} << 20;
// Offset 0 is none.
inline constexpr size_t kHeapBegin = 64;

// One direction of a link. The sender increments a message's slot before it
// releases the memory that the message refers to, be it in the heap, whose
// ranges the sender allocates, or its own.
struct LinkHalf {
  ipc::RingControl control;
  std::array<std::atomic<uint64_t>, kNumSlots> slots;
  std::array<char, kRingBytes> bytes;
  alignas(64) std::array<char, kHeapBytes> heap;
};
struct LinkLayout {
  LinkHalf to_server;
  LinkHalf to_client;
};

// One end's mapping. Thread-safe as its layout is.
class LinkMemory {
 public:
  // Creates the memory of a link, at the server, and returns it with the
  // descriptor to send to the client. Errors as of ipc::SharedMemory::Create.
  static absl::StatusOr<std::pair<std::shared_ptr<LinkMemory>, fs::UniqueFd>>
  Create();
  // Maps a descriptor received from the server. Errors as of
  // ipc::SharedMemory::Map.
  static absl::StatusOr<std::shared_ptr<LinkMemory>> Map(
      const fs::UniqueFd& fd);

  LinkMemory(const LinkMemory&) = delete;
  LinkMemory& operator=(const LinkMemory&) = delete;

  LinkLayout& layout() const {
    return *static_cast<LinkLayout*>(memory_.data());
  }

 private:
  explicit LinkMemory(ipc::SharedMemory memory) : memory_(std::move(memory)) {}

  const ipc::SharedMemory memory_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_SAME_HOST_LINK_MEMORY_H_
