#ifndef HAWSER_LAUNCH_PROCESS_GUARD_H_
#define HAWSER_LAUNCH_PROCESS_GUARD_H_

#include <sys/types.h>

#include <memory>

#include "absl/status/statusor.h"

namespace hawser::launch {

// A helper process that kills the process groups of a supervisor's children
// when the supervisor dies, also by SIGKILL. The kernel alone kills the
// children (PR_SET_PDEATHSIG), but not the processes that they have started.
//
// The helper blocks all signals, keeps none of the supervisor's descriptors,
// and has a process group of its own. Not thread-safe.
class ProcessGuard {
 public:
  // kUnavailable or kResourceExhausted if the helper cannot be started.
  static absl::StatusOr<std::unique_ptr<ProcessGuard>> Start();

  // Ends the helper, which first kills the groups that it still knows.
  ~ProcessGuard();
  ProcessGuard(const ProcessGuard&) = delete;
  ProcessGuard& operator=(const ProcessGuard&) = delete;

  pid_t pid() const { return pid_; }

  // Adds the group `group`, whose leader is the calling process. The child
  // calls it between fork and exec, before it can have children of its own.
  // Async-signal-safe.
  void Watch(pid_t group) const;

  // Removes `group`. Call it while the leader is not reaped, so that its
  // number cannot be that of another process.
  void Forget(pid_t group) const;

 private:
  ProcessGuard(pid_t pid, int socket) : pid_(pid), socket_(socket) {}

  const pid_t pid_;
  const int socket_;
};

}  // namespace hawser::launch

#endif  // HAWSER_LAUNCH_PROCESS_GUARD_H_
