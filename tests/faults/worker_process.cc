#include "tests/faults/worker_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "async/check.h"
#include "gtest/gtest.h"

namespace hawser::tests {
namespace {

constexpr char kProgram[] = "tests/faults/fault_worker";

// Waits until `descriptor` is readable or at its end. False after `limit`.
bool AwaitReadable(int descriptor, absl::Duration limit) {
  pollfd wanted{descriptor, POLLIN, 0};
  return poll(&wanted, 1,
              static_cast<int>(absl::ToInt64Milliseconds(
                  std::max(limit, absl::ZeroDuration())))) == 1;
}

}  // namespace

WorkerProcess::WorkerProcess(const WorkerProcessOptions& options) {
  std::vector<std::string> arguments = {
      kProgram,
      absl::StrCat("--store=", options.store),
      absl::StrCat("--name=", options.name),
      absl::StrCat("--rank=", options.rank),
      absl::StrCat("--job=", options.job),
      absl::StrCat("--bind=", options.bind_address),
      absl::StrCat("--advertise=", options.advertise_address),
      absl::StrCat("--same_host=", options.same_host ? "true" : "false"),
      absl::StrCat("--uid=", options.uid),
      absl::StrCat("--silent_limit=",
                   absl::FormatDuration(options.liveness.silent_limit)),
      absl::StrCat("--unreachable_limit=",
                   absl::FormatDuration(options.liveness.unreachable_limit))};
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  int ends[2];
  HAWSER_CHECK(pipe2(ends, O_CLOEXEC) == 0) << "cannot create a pipe";
  const pid_t parent = getpid();
  pid_ = fork();
  HAWSER_CHECK(pid_ >= 0) << "cannot fork";
  if (pid_ == 0) {
    // The child dies with the test's process.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);
    dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
    dup2(ends[1], STDOUT_FILENO);
    execv(kProgram, argv.data());
    _exit(127);
  }
  close(ends[1]);
  reports_ = ends[0];
  process_ = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
  HAWSER_CHECK(process_ >= 0) << "cannot watch a process";
}

WorkerProcess::~WorkerProcess() {
  Signal(SIGKILL);
  (void)Wait();
  close(reports_);
  close(process_);
}

std::optional<std::string> WorkerProcess::ReadLine(absl::Duration limit) {
  const absl::Time deadline = absl::Now() + limit;
  while (true) {
    if (const size_t end = unread_.find('\n'); end != std::string::npos) {
      std::string line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      return line;
    }
    if (!AwaitReadable(reports_, deadline - absl::Now())) return std::nullopt;
    char bytes[4096];
    const ssize_t count = read(reports_, bytes, sizeof(bytes));
    if (count <= 0) return std::nullopt;
    unread_.append(bytes, count);
  }
}

bool WorkerProcess::AwaitReady() {
  const std::string line = ReadLine().value_or("nothing");
  std::vector<std::string> words = absl::StrSplit(line, ' ');
  if (words.size() != 3 || words[0] != "ready") {
    ADD_FAILURE() << "the worker did not join, but reported " << line;
    return false;
  }
  address_ = std::move(words[1]);
  incarnation_ = std::move(words[2]);
  return true;
}

void WorkerProcess::Signal(int signal) {
  if (exit_code_.has_value() || kill(pid_, signal) != 0) return;
  if (signal != SIGSTOP) return;
  siginfo_t stopped;
  HAWSER_CHECK(waitid(P_PID, pid_, &stopped, WSTOPPED | WEXITED | WNOWAIT) == 0)
      << "cannot wait for a process";
}

int WorkerProcess::Wait(absl::Duration limit) {
  if (exit_code_.has_value()) return *exit_code_;
  if (!AwaitReadable(process_, limit)) return -1;
  int status = 0;
  waitpid(pid_, &status, 0);
  exit_code_ =
      WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return *exit_code_;
}

}  // namespace hawser::tests
