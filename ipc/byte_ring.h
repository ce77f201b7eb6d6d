// A queue of frames in memory that two processes share.

#ifndef HAWSER_IPC_BYTE_RING_H_
#define HAWSER_IPC_BYTE_RING_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hawser::rpc {

// What both ends write and read besides the frames' bytes. Lies in shared
// memory, zeroed at first; lock-free atomics work across processes.
struct RingControl {
  // Bytes ever written and read.
  alignas(64) std::atomic<uint64_t> written;
  // One more than the number of the core that the last frame was written on.
  std::atomic<uint32_t> writer_core;
  alignas(64) std::atomic<uint64_t> read;
  // 1 while nobody looks at the ring: who writes rings the reader's bell.
  alignas(64) std::atomic<uint32_t> reader_asleep;
  // 1 while the writer waits for room: who reads rings the writer's bell.
  std::atomic<uint32_t> writer_waits;
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);

enum class RingResult {
  kDone,
  // Full, or empty.
  kNothing,
  // The other process wrote what cannot be: the ring must not be used any more.
  kBroken,
};

// The longest frame, in bytes.
inline constexpr size_t kMaxRingFrame = size_t{32} << 10;

// The end that writes. One thread at a time.
class RingWriter {
 public:
  // `capacity`, a power of two, bytes at `data`, and `control`, outlive this.
  RingWriter(RingControl* control, char* data, size_t capacity)
      : control_(*control), data_(data), capacity_(capacity) {}

  // Writes a frame of up to kMaxRingFrame bytes, or, where there is no room,
  // nothing; the writer is then known to wait.
  RingResult Write(std::string_view frame);

  // After writing: whether the reader's bell must be rung.
  bool MustRing();

 private:
  bool HasRoom(size_t size, bool* broken);
  void CopyIn(uint64_t at, const void* from, size_t size);

  RingControl& control_;
  char* const data_;
  const size_t capacity_;
  // Not read back from memory that the other process can write.
  uint64_t written_ = 0;
  uint64_t read_ = 0;
};

// The end that reads. One thread at a time, but for the methods on sleeping.
class RingReader {
 public:
  RingReader(RingControl* control, const char* data, size_t capacity)
      : control_(*control), data_(data), capacity_(capacity) {}

  // Takes one frame; replaces the content of `frame`.
  RingResult Read(std::string& frame);

  // After reading: whether the writer waits for room and must be told.
  bool MustRing();

  // Whether there is a frame. Any thread.
  bool HasFrame() const {
    return control_.written.load(std::memory_order_seq_cst) !=
           read_.load(std::memory_order_acquire);
  }
  // Whether the last frame was written on the core that this thread runs on:
  // who looks for the next one there keeps it from being written. Any thread.
  bool WriterWasHere() const;
  // The writer rings from now on. What it wrote before may have come without:
  // true if so. Any thread.
  bool FallAsleep() {
    control_.reader_asleep.store(1, std::memory_order_seq_cst);
    return HasFrame();
  }
  void WakeUp() { control_.reader_asleep.store(0, std::memory_order_relaxed); }

 private:
  void CopyOut(uint64_t at, void* to, size_t size) const;

  RingControl& control_;
  const char* const data_;
  const size_t capacity_;
  // Not read back from memory that the other process can write.
  std::atomic<uint64_t> read_{0};
};

}  // namespace hawser::rpc

#endif  // HAWSER_IPC_BYTE_RING_H_
