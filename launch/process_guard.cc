#include "launch/process_guard.h"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>

#include "absl/status/status.h"

namespace hawser::launch {
namespace {

// Groups beyond this number are not killed by the helper.
constexpr size_t kMaxGroups = 4096;

// A message to the helper.
struct Message {
  pid_t group;
  bool watched;
};

void Send(int socket, const Message& message) {
  // An error means that the helper has ended: the kernel still kills the
  // children themselves.
  while (send(socket, &message, sizeof(message), MSG_NOSIGNAL) < 0 &&
         errno == EINTR) {
  }
}

// Closes all descriptors other than `kept`.
void CloseOthers(int kept) {
  if (kept > 0) close_range(0, static_cast<unsigned>(kept) - 1, 0);
  close_range(static_cast<unsigned>(kept) + 1, ~0U, 0);
}

// The helper. Runs after fork in a process that may have had threads, so it
// makes only async-signal-safe calls.
[[noreturn]] void Guard(int socket) {
  setpgid(0, 0);
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  prctl(PR_SET_NAME, "hawser-guard");
  CloseOthers(socket);
  std::array<pid_t, kMaxGroups> groups;
  size_t num_groups = 0;
  Message message;
  ssize_t got;
  // The end of the stream means that the supervisor has died.
  while ((got = recv(socket, &message, sizeof(message), 0)) != 0) {
    if (got < 0 && errno != EINTR) break;
    if (got != static_cast<ssize_t>(sizeof(message))) continue;
    size_t at = 0;
    while (at < num_groups && groups[at] != message.group) ++at;
    if (message.watched && at == num_groups && num_groups < kMaxGroups) {
      groups[num_groups++] = message.group;
    } else if (!message.watched && at < num_groups) {
      groups[at] = groups[--num_groups];
    }
  }
  for (size_t i = 0; i < num_groups; ++i) kill(-groups[i], SIGKILL);
  _exit(0);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ProcessGuard>> ProcessGuard::Start() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return absl::ErrnoToStatus(errno, "cannot start the process guard");
  }
  const pid_t pid = fork();
  if (pid == 0) Guard(ends[0]);
  const int fork_error = errno;
  close(ends[0]);
  if (pid < 0) {
    close(ends[1]);
    return absl::ErrnoToStatus(fork_error, "cannot start the process guard");
  }
  return std::unique_ptr<ProcessGuard>(new ProcessGuard(pid, ends[1]));
}

ProcessGuard::~ProcessGuard() {
  close(socket_);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void ProcessGuard::Watch(pid_t group) const { Send(socket_, {group, true}); }

void ProcessGuard::Forget(pid_t group) const { Send(socket_, {group, false}); }

}  // namespace hawser::launch
