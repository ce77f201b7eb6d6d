// Memory shared by processes of one machine.

#ifndef HAWSER_IPC_SHARED_MEMORY_H_
#define HAWSER_IPC_SHARED_MEMORY_H_

#include <cstddef>
#include <utility>

#include "absl/status/statusor.h"
#include "fs/unique_fd.h"

namespace hawser::ipc {

// A mapping of a sealed memfd. No process can change the size, and so
// invalidate another's mapping. No file is left behind: the memory is freed
// when all processes have unmapped it or exited. Pages are allocated on first
// write, and are zero until then.
//
// Processes that map the memory do not trust each other's writes: readers check
// whatever they read from it. Movable; not thread-safe, unlike the memory.
class SharedMemory {
 public:
  // Creates `bytes` bytes, at least 1, and returns the mapping with the
  // descriptor to send to other processes. `name` shows in /proc/<pid>/maps.
  // kInvalidArgument for a size of 0; else the system's error, such as
  // kResourceExhausted.
  static absl::StatusOr<std::pair<SharedMemory, fs::UniqueFd>> Create(
      const char* name, size_t bytes);

  // Maps a descriptor received from another process. kInvalidArgument if it is
  // not a memfd of `bytes` bytes, sealed against resizing.
  static absl::StatusOr<SharedMemory> Map(const fs::UniqueFd& fd, size_t bytes);

  SharedMemory(SharedMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}
  SharedMemory& operator=(SharedMemory&&) = delete;
  ~SharedMemory();

  // Aligned to a page.
  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  SharedMemory(void* data, size_t bytes) : data_(data), bytes_(bytes) {}
  static absl::StatusOr<SharedMemory> MapChecked(int fd, size_t bytes);

  void* data_;
  size_t bytes_;
};

}  // namespace hawser::ipc

#endif  // HAWSER_IPC_SHARED_MEMORY_H_
