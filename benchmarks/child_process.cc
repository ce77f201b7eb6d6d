#include "benchmarks/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <string_view>
#include <utility>

namespace hawser::benchmarks {
namespace {

// The argument of poll() for a wait until `deadline`.
int MillisecondsUntil(absl::Time deadline) {
  if (deadline == absl::InfiniteFuture()) return -1;
  const absl::Duration left = absl::Ceil(
      std::clamp(deadline - absl::Now(), absl::ZeroDuration(), absl::Hours(1)),
      absl::Milliseconds(1));
  return static_cast<int>(absl::ToInt64Milliseconds(left));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Start(
    const std::vector<std::string>& command) {
  // A write to a dead process must fail instead of ending this one.
  signal(SIGPIPE, SIG_IGN);
  int request[2], reply[2];
  if (pipe2(request, O_CLOEXEC) != 0) {
    return absl::ErrnoToStatus(errno, "cannot create pipes to a process");
  }
  if (pipe2(reply, O_CLOEXEC) != 0) {
    const int error = errno;
    close(request[0]);
    close(request[1]);
    return absl::ErrnoToStatus(error, "cannot create pipes to a process");
  }
  std::vector<char*> argv;
  argv.reserve(command.size() + 1);
  for (const std::string& argument : command) {
    argv.push_back(const_cast<char*>(argument.c_str()));
  }
  argv.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    // The parent may have died before the line above.
    if (getppid() != parent) _exit(127);
    setpgid(0, 0);
    signal(SIGPIPE, SIG_DFL);
    dup2(request[0], STDIN_FILENO);
    dup2(reply[1], STDOUT_FILENO);
    execv(argv[0], argv.data());
    _exit(127);
  }
  const int fork_error = errno;
  close(request[0]);
  close(reply[1]);
  if (pid < 0) {
    close(request[1]);
    close(reply[0]);
    return absl::ErrnoToStatus(fork_error, "cannot start a process");
  }
  // Called in parent and child, since either may run first. This one fails if
  // the child has already run exec.
  (void)setpgid(pid, pid);
  return std::unique_ptr<ChildProcess>(
      new ChildProcess(pid, request[1], reply[0]));
}

ChildProcess::~ChildProcess() {
  close(to_);
  close(from_);
  kill(-pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

absl::Status ChildProcess::Send(const std::string& line) {
  const std::string text = line + "\n";
  for (std::string_view left = text; !left.empty();) {
    const ssize_t written = write(to_, left.data(), left.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return absl::UnavailableError("the process has ended");
    left.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ChildProcess::Receive(absl::Time deadline) {
  for (;;) {
    const size_t end = buffer_.find('\n');
    if (end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return line;
    }
    pollfd readable = {.fd = from_, .events = POLLIN, .revents = 0};
    const int ready = poll(&readable, 1, MillisecondsUntil(deadline));
    if (ready == 0 && absl::Now() >= deadline) {
      return absl::DeadlineExceededError("the process did not reply in time");
    }
    if (ready <= 0) continue;
    char bytes[4096];
    const ssize_t count = read(from_, bytes, sizeof(bytes));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return absl::UnavailableError("the process has ended");
    buffer_.append(bytes, static_cast<size_t>(count));
  }
}

}  // namespace hawser::benchmarks
