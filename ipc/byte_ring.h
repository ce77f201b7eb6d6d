// A queue of frames in memory shared by two processes.

#ifndef HAWSER_IPC_BYTE_RING_H_
#define HAWSER_IPC_BYTE_RING_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hawser::ipc {

// Control block of a ring, in shared memory and initially zero. Lock-free
// atomics work across processes.
struct RingControl {
  // Total bytes written and read.
  alignas(64) std::atomic<uint64_t> written;
  // Number of the core that wrote the last frame, plus one.
  std::atomic<uint32_t> writer_core;
  alignas(64) std::atomic<uint64_t> read;
  // 1 while no thread polls the ring: the writer must signal the reader's
  // doorbell.
  alignas(64) std::atomic<uint32_t> reader_asleep;
  // 1 while the writer waits for space: the reader must signal the writer's
  // doorbell.
  std::atomic<uint32_t> writer_waits;
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);

enum class RingResult {
  kDone,
  // The ring is full (Write) or empty (Read).
  kNothing,
  // The other process wrote inconsistent values: the ring must not be used any
  // more.
  kBroken,
};

// Maximum size of a frame, in bytes.
inline constexpr size_t kMaxRingFrame = size_t{32} << 10;

// The writing end. Used by one thread at a time.
class RingWriter {
 public:
  // `data` has `capacity` bytes, a power of two. `data` and `control` must
  // outlive this.
  RingWriter(RingControl* control, char* data, size_t capacity)
      : control_(*control), data_(data), capacity_(capacity) {}

  // Writes a frame of up to kMaxRingFrame bytes. If there is no space, writes
  // nothing and marks the writer as waiting.
  RingResult Write(std::string_view frame);
  // The same without writing: after kDone, Write of `frame_bytes` bytes has
  // space.
  RingResult FindRoom(size_t frame_bytes);

  // After writing: whether the reader's doorbell must be signalled.
  bool NeedsSignal();

 private:
  bool HasRoom(size_t size, bool* broken);
  void CopyIn(uint64_t at, const void* from, size_t size);

  RingControl& control_;
  char* const data_;
  const size_t capacity_;
  // Kept here, because the other process can write to the shared copy.
  uint64_t written_ = 0;
  uint64_t read_ = 0;
};

// The reading end. Used by one thread at a time, except for the methods marked
// "any thread".
class RingReader {
 public:
  RingReader(RingControl* control, const char* data, size_t capacity)
      : control_(*control), data_(data), capacity_(capacity) {}

  // Reads one frame into `frame`, replacing its content.
  RingResult Read(std::string& frame);

  // After reading: whether the writer waits for space and must be signalled.
  bool NeedsSignal();

  // Whether the ring holds a frame. Any thread.
  bool HasFrame() const {
    return control_.written.load(std::memory_order_seq_cst) !=
           read_.load(std::memory_order_acquire);
  }
  // Whether the last frame was written on the core that this thread runs on.
  // Polling there would keep the writer from running. Any thread.
  bool WriterOnThisCore() const;
  // From now on the writer signals the doorbell. Returns true if the ring holds
  // frames that may have been written without a signal. Any thread.
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
  // Kept here, because the other process can write to the shared copy.
  std::atomic<uint64_t> read_{0};
};

}  // namespace hawser::ipc

#endif  // HAWSER_IPC_BYTE_RING_H_
