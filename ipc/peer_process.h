// The process at the other end of a connection, and its memory.

#ifndef HAWSER_IPC_PEER_PROCESS_H_
#define HAWSER_IPC_PEER_PROCESS_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fs/unique_fd.h"

namespace hawser::ipc {

// /proc/sys/kernel/random/boot_id: equal for the processes of one machine.
// Empty if it cannot be read.
const std::string& BootId();

// Thread-safe.
class PeerProcess {
 public:
  // Returns the process that opened the other end of a connected Unix socket.
  // kPermissionDenied: it runs as another user. kUnavailable: it has ended, is
  // not visible from here, or the kernel does not report it.
  static absl::StatusOr<std::shared_ptr<const PeerProcess>> Of(int socket);

  // Returns the process with this id and start time (/proc/<pid>/stat, in clock
  // ticks since boot). kUnavailable: it has ended, or is not visible from here.
  static absl::StatusOr<std::shared_ptr<const PeerProcess>> Open(
      pid_t pid, uint64_t start_time);
  // The start time of a process that runs. kUnavailable as above.
  static absl::StatusOr<uint64_t> StartTimeOf(pid_t pid);

  // Whether the process has ended.
  bool HasEnded() const;

  pid_t pid() const { return pid_; }

  // Copies `size` bytes at `address` of that process to `to`. kUnavailable if
  // the process has ended or its memory cannot be read; `to` may be partly
  // written then.
  absl::Status Read(uint64_t address, void* to, size_t size) const;

 private:
  PeerProcess(pid_t pid, fs::UniqueFd pidfd)
      : pid_(pid), pidfd_(std::move(pidfd)) {}

  const pid_t pid_;
  // Becomes readable when the process ends. Needed because process ids are
  // reused.
  const fs::UniqueFd pidfd_;
};

}  // namespace hawser::ipc

#endif  // HAWSER_IPC_PEER_PROCESS_H_
