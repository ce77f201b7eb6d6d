// A stream of bytes from one rank to another.

#ifndef HAWSER_COLLECTIVES_HOST_MESSAGE_PIPE_H_
#define HAWSER_COLLECTIVES_HOST_MESSAGE_PIPE_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "collectives/host/region.h"

namespace hawser::collectives {

// One end of a ring of the region. Each end belongs to one thread at a time.
class MessagePipe {
 public:
  MessagePipe(const Region& region, int from, int to)
      : state_(region.ring(from, to)),
        data_(region.ring_data(from, to)),
        capacity_(region.layout().ring_bytes) {}

  // Both return how many bytes they wrote or read, which may be 0.
  size_t Write(std::span<const std::byte> bytes) {
    const uint64_t written = state_.written.load(std::memory_order_relaxed);
    const uint64_t read = state_.read.load(std::memory_order_acquire);
    const size_t free = capacity_ - static_cast<size_t>(written - read);
    const size_t count = std::min(free, bytes.size());
    const size_t at = written % capacity_;
    const size_t first = std::min(count, capacity_ - at);
    std::memcpy(data_ + at, bytes.data(), first);
    std::memcpy(data_, bytes.data() + first, count - first);
    if (count > 0) {
      state_.written.store(written + count, std::memory_order_release);
    }
    return count;
  }
  size_t Read(std::span<std::byte> bytes) {
    const uint64_t read = state_.read.load(std::memory_order_relaxed);
    const size_t count = std::min(available(), bytes.size());
    const size_t at = read % capacity_;
    const size_t first = std::min(count, capacity_ - at);
    std::memcpy(bytes.data(), data_ + at, first);
    std::memcpy(bytes.data() + first, data_, count - first);
    if (count > 0) {
      state_.read.store(read + count, std::memory_order_release);
    }
    return count;
  }

  // Bytes that can be read.
  size_t available() const {
    return static_cast<size_t>(state_.written.load(std::memory_order_acquire) -
                               state_.read.load(std::memory_order_relaxed));
  }

 private:
  RingState& state_;
  std::byte* const data_;
  const size_t capacity_;
};

}  // namespace hawser::collectives

#endif  // HAWSER_COLLECTIVES_HOST_MESSAGE_PIPE_H_
