#include "tests/faults/reporting_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "absl/time/clock.h"
#include "async/check.h"

namespace hawser::tests {
namespace {

// Waits until `descriptor` is readable or at its end. False after `limit`.
bool AwaitReadable(int descriptor, absl::Duration limit) {
  pollfd wanted{descriptor, POLLIN, 0};
  return poll(&wanted, 1,
              static_cast<int>(absl::ToInt64Milliseconds(
                  std::max(limit, absl::ZeroDuration())))) == 1;
}

}  // namespace

ReportingProcess::ReportingProcess(const std::string& program,
                                   const std::vector<std::string>& arguments,
                                   size_t max_data_bytes) {
  std::vector<std::string> words = {program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  int reports[2];
  int commands[2];
  // A socket, so that writing to an ended process need not raise SIGPIPE.
  HAWSER_CHECK(pipe2(reports, O_CLOEXEC) == 0 &&
               socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, commands) ==
                   0)
      << "cannot create pipes";
  const pid_t parent = getpid();
  pid_ = fork();
  HAWSER_CHECK(pid_ >= 0) << "cannot fork";
  if (pid_ == 0) {
    // The child dies with the test's process.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);
    if (max_data_bytes > 0) {
      const rlimit limit = {max_data_bytes, max_data_bytes};
      if (setrlimit(RLIMIT_DATA, &limit) != 0) _exit(127);
    }
    dup2(commands[1], STDIN_FILENO);
    dup2(reports[1], STDOUT_FILENO);
    execv(program.c_str(), argv.data());
    _exit(127);
  }
  close(reports[1]);
  close(commands[1]);
  reports_ = reports[0];
  commands_ = commands[0];
  process_ = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
  HAWSER_CHECK(process_ >= 0) << "cannot watch a process";
}

ReportingProcess::~ReportingProcess() {
  Signal(SIGKILL);
  (void)Wait();
  close(reports_);
  close(commands_);
  close(process_);
}

std::optional<std::string> ReportingProcess::ReadLine(absl::Duration limit) {
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

void ReportingProcess::WriteLine(const std::string& line) {
  const std::string bytes = line + "\n";
  (void)send(commands_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

void ReportingProcess::Signal(int signal) {
  if (exit_code_.has_value() || kill(pid_, signal) != 0) return;
  if (signal != SIGSTOP) return;
  siginfo_t stopped;
  HAWSER_CHECK(waitid(P_PID, pid_, &stopped, WSTOPPED | WEXITED | WNOWAIT) == 0)
      << "cannot wait for a process";
}

int ReportingProcess::Wait(absl::Duration limit) {
  if (exit_code_.has_value()) return *exit_code_;
  if (!AwaitReadable(process_, limit)) return -1;
  int status = 0;
  waitpid(pid_, &status, 0);
  exit_code_ =
      WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return *exit_code_;
}

}  // namespace hawser::tests
