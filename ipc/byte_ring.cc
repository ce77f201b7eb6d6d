#include "ipc/byte_ring.h"

#include <sched.h>

#include <algorithm>
#include <cstring>

namespace hawser::ipc {
namespace {

constexpr size_t kAlignment = 8;

// A frame is a 4-byte length, the payload and padding.
uint64_t SpaceOf(size_t size) {
  return (sizeof(uint32_t) + size + kAlignment - 1) & ~(kAlignment - 1);
}

// Never 0, the value in a ring that was never written to.
uint32_t ThisCore() { return static_cast<uint32_t>(sched_getcpu()) + 1; }

}  // namespace

void RingWriter::CopyIn(uint64_t at, const void* from, size_t size) {
  const size_t begin = at & (capacity_ - 1);
  const size_t first = std::min(size, capacity_ - begin);
  std::memcpy(data_ + begin, from, first);
  std::memcpy(data_, static_cast<const char*>(from) + first, size - first);
}

bool RingWriter::HasRoom(size_t size, bool* broken) {
  const uint64_t space = SpaceOf(size);
  if (capacity_ - (written_ - read_) >= space) return true;
  const uint64_t read = control_.read.load(std::memory_order_seq_cst);
  *broken = read < read_ || read > written_;
  if (*broken) return false;
  read_ = read;
  return capacity_ - (written_ - read_) >= space;
}

RingResult RingWriter::FindRoom(size_t frame_bytes) {
  bool broken = false;
  if (!HasRoom(frame_bytes, &broken) && !broken) {
    control_.writer_waits.store(1, std::memory_order_seq_cst);
    // The reader may have read before it could see `writer_waits`.
    if (!HasRoom(frame_bytes, &broken) && !broken) return RingResult::kNothing;
  }
  return broken ? RingResult::kBroken : RingResult::kDone;
}

RingResult RingWriter::Write(std::string_view frame) {
  if (const RingResult room = FindRoom(frame.size());
      room != RingResult::kDone) {
    return room;
  }
  const auto size = static_cast<uint32_t>(frame.size());
  CopyIn(written_, &size, sizeof(size));
  CopyIn(written_ + sizeof(size), frame.data(), frame.size());
  written_ += SpaceOf(frame.size());
  control_.writer_core.store(ThisCore(), std::memory_order_relaxed);
  // Sequentially consistent with reader_asleep, as `read` is with writer_waits:
  // if both ends store and then load, at least one sees the other's store.
  control_.written.store(written_, std::memory_order_seq_cst);
  return RingResult::kDone;
}

bool RingWriter::NeedsSignal() {
  return control_.reader_asleep.load(std::memory_order_seq_cst) != 0 &&
         control_.reader_asleep.exchange(0, std::memory_order_seq_cst) != 0;
}

void RingReader::CopyOut(uint64_t at, void* to, size_t size) const {
  const size_t begin = at & (capacity_ - 1);
  const size_t first = std::min(size, capacity_ - begin);
  std::memcpy(to, data_ + begin, first);
  std::memcpy(static_cast<char*>(to) + first, data_, size - first);
}

RingResult RingReader::Read(std::string& frame) {
  const uint64_t written = control_.written.load(std::memory_order_acquire);
  const uint64_t read = read_.load(std::memory_order_relaxed);
  if (written == read) return RingResult::kNothing;
  const uint64_t there = written - read;
  uint32_t size = 0;
  if (written < read || there > capacity_ || there < sizeof(size)) {
    return RingResult::kBroken;
  }
  CopyOut(read, &size, sizeof(size));
  if (size > kMaxRingFrame || SpaceOf(size) > there) return RingResult::kBroken;
  frame.resize(size);
  CopyOut(read + sizeof(size), frame.data(), size);
  read_.store(read + SpaceOf(size), std::memory_order_release);
  control_.read.store(read + SpaceOf(size), std::memory_order_seq_cst);
  return RingResult::kDone;
}

bool RingReader::WriterOnThisCore() const {
  return control_.writer_core.load(std::memory_order_relaxed) == ThisCore();
}

bool RingReader::NeedsSignal() {
  return control_.writer_waits.load(std::memory_order_seq_cst) != 0 &&
         control_.writer_waits.exchange(0, std::memory_order_seq_cst) != 0;
}

}  // namespace hawser::ipc
