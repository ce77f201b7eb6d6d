#include "launch/supervisor.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <ctime>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"

namespace hawser::launch {
namespace {

using SteadyClock = std::chrono::steady_clock;

sigset_t SupervisedSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

std::string Describe(const std::string& name, int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    const int signal_number = WTERMSIG(wait_status);
    return absl::StrCat(name, " was killed by signal ", signal_number, " (",
                        strsignal(signal_number), ")");
  }
  return absl::StrCat(name, " exited with code ", WEXITSTATUS(wait_status));
}

// Whether SIGINT or SIGTERM ended a child, or made it exit as shells report it.
bool WasStopped(int wait_status) {
  const int number = WIFSIGNALED(wait_status) ? WTERMSIG(wait_status)
                                              : WEXITSTATUS(wait_status) - 128;
  return number == SIGINT || number == SIGTERM;
}

// Runs between fork and exec, so it makes only async-signal-safe calls. Returns
// only if the executable could not be started.
void BecomeChild(char* const* argv, pid_t parent, const sigset_t& mask) {
  // The kernel kills the child when its parent ends for any reason.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  const int null = open("/dev/null", O_RDONLY);
  if (null >= 0) {
    dup2(null, STDIN_FILENO);
    if (null != STDIN_FILENO) close(null);
  }
  execv(argv[0], argv);
}

}  // namespace

void Supervisor::BlockSignals() {
  const sigset_t set = SupervisedSignals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

absl::StatusOr<std::unique_ptr<Supervisor>> Supervisor::Start(
    const std::vector<ChildSpec>& children, SupervisorOptions options) {
  BlockSignals();
  std::unique_ptr<Supervisor> supervisor(new Supervisor(options));
  for (const ChildSpec& spec : children) {
    RETURN_IF_ERROR(supervisor->Spawn(spec));
  }
  return supervisor;
}

absl::Status Supervisor::Spawn(const ChildSpec& spec) {
  if (spec.command.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot start ", spec.name, ": its command is empty"));
  }
  std::vector<char*> argv;
  for (const std::string& argument : spec.command) {
    argv.push_back(const_cast<char*>(argument.c_str()));
  }
  argv.push_back(nullptr);

  // The child reports a failed exec through this pipe. A successful exec closes
  // it.
  int pipe_ends[2];
  if (pipe2(pipe_ends, O_CLOEXEC) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot start ", spec.name));
  }
  sigset_t empty_mask;
  sigemptyset(&empty_mask);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) {
    BecomeChild(argv.data(), parent, empty_mask);
    const int error = errno;
    const ssize_t ignored = write(pipe_ends[1], &error, sizeof(error));
    _exit(ignored == sizeof(error) ? 127 : 126);
  }
  const int fork_error = errno;
  close(pipe_ends[1]);
  if (pid < 0) {
    close(pipe_ends[0]);
    return absl::ErrnoToStatus(fork_error,
                               absl::StrCat("cannot start ", spec.name));
  }
  int exec_error = 0;
  ssize_t got;
  do {
    got = read(pipe_ends[0], &exec_error, sizeof(exec_error));
  } while (got < 0 && errno == EINTR);
  close(pipe_ends[0]);
  if (got == sizeof(exec_error)) {
    waitpid(pid, nullptr, 0);
    return absl::ErrnoToStatus(
        exec_error, absl::StrCat("cannot start ", spec.name, ": cannot run ",
                                 spec.command[0]));
  }
  children_.push_back({spec.name, pid, true});
  return absl::OkStatus();
}

Supervisor::~Supervisor() {
  Signal(SIGKILL);
  for (Child& child : children_) {
    if (child.running) waitpid(child.pid, nullptr, 0);
  }
}

int Supervisor::num_running() const {
  return static_cast<int>(
      std::count_if(children_.begin(), children_.end(),
                    [](const Child& child) { return child.running; }));
}

void Supervisor::Signal(int signal_number) {
  for (const Child& child : children_) {
    if (child.running) kill(child.pid, signal_number);
  }
}

void Supervisor::Reap() {
  for (Child& child : children_) {
    int wait_status = 0;
    if (!child.running || waitpid(child.pid, &wait_status, WNOHANG) <= 0) {
      continue;
    }
    child.running = false;
    const bool success =
        WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0;
    if (!success) NoteFailure(child, wait_status);
  }
}

void Supervisor::NoteFailure(const Child& child, int wait_status) {
  // A child that ends after the order to stop has not failed.
  if (stop_signal_ != 0) return;
  const bool is_consequence =
      WIFEXITED(wait_status) &&
      WEXITSTATUS(wait_status) == options_.consequence_exit_code;
  if (!first_failure_.ok() && (is_consequence || !first_is_consequence_)) {
    return;
  }
  first_failure_ = absl::AbortedError(Describe(child.name, wait_status));
  first_was_stopped_ = WasStopped(wait_status);
  first_is_consequence_ = is_consequence;
}

void Supervisor::NoteStopSignal(int signal_number) {
  // Ctrl-C sends SIGINT to the children too, which may end first.
  if (first_failure_.ok() || (stop_signal_ == 0 && first_was_stopped_)) {
    first_failure_ = absl::CancelledError(
        absl::StrCat("stopped by ", strsignal(signal_number)));
  }
  stop_signal_ = signal_number;
}

absl::Status Supervisor::Wait() {
  const sigset_t signals = SupervisedSignals();
  enum class Stage { kRunning, kNoticing, kTerminating, kKilled };
  Stage stage = Stage::kRunning;
  SteadyClock::time_point next_stage_at = SteadyClock::time_point::max();
  Reap();
  while (num_running() > 0) {
    if (stage == Stage::kRunning && !first_failure_.ok()) {
      stage = Stage::kNoticing;
      next_stage_at = SteadyClock::now() +
                      absl::ToChronoNanoseconds(options_.notice_period);
    }
    if (SteadyClock::now() >= next_stage_at) {
      if (stage == Stage::kNoticing) {
        stage = Stage::kTerminating;
        Signal(SIGTERM);
        next_stage_at =
            SteadyClock::now() + absl::ToChronoNanoseconds(options_.kill_delay);
      } else {
        stage = Stage::kKilled;
        Signal(SIGKILL);
        next_stage_at = SteadyClock::time_point::max();
      }
    }
    // At most one second, which bounds the delay after a missed SIGCHLD.
    std::chrono::nanoseconds left = std::chrono::seconds(1);
    if (next_stage_at != SteadyClock::time_point::max()) {
      left = std::clamp<std::chrono::nanoseconds>(
          next_stage_at - SteadyClock::now(), std::chrono::nanoseconds(0),
          left);
    }
    const timespec timeout{static_cast<time_t>(left.count() / 1'000'000'000),
                           static_cast<long>(left.count() % 1'000'000'000)};
    const int received = sigtimedwait(&signals, nullptr, &timeout);
    if (received == SIGINT || received == SIGTERM) {
      NoteStopSignal(received);
      stage = Stage::kNoticing;
      next_stage_at = SteadyClock::now();
    }
    Reap();
  }
  // The signal that stopped all children may still be pending here.
  const timespec now = {};
  if (first_was_stopped_ && stop_signal_ == 0) {
    const int received = sigtimedwait(&signals, nullptr, &now);
    if (received == SIGINT || received == SIGTERM) NoteStopSignal(received);
  }
  return first_failure_;
}

}  // namespace hawser::launch
