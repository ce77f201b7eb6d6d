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
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"

namespace hawser::launch {
namespace {

using SteadyClock = std::chrono::steady_clock;

// Whether the parent made this process ignore the signal, as nohup does.
bool IsIgnored(int signal_number) {
  struct sigaction action;
  return sigaction(signal_number, nullptr, &action) == 0 &&
         action.sa_handler == SIG_IGN;
}

bool StopsTheJob(int signal_number) {
  return signal_number == SIGINT || signal_number == SIGTERM ||
         signal_number == SIGHUP;
}

sigset_t SupervisedSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  if (!IsIgnored(SIGHUP)) sigaddset(&set, SIGHUP);
  return set;
}

timespec ToTimespec(std::chrono::nanoseconds time) {
  return {static_cast<time_t>(time.count() / 1'000'000'000),
          static_cast<long>(time.count() % 1'000'000'000)};
}

std::string Describe(const std::string& name, int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    const int signal_number = WTERMSIG(wait_status);
    return absl::StrCat(name, " was killed by signal ", signal_number, " (",
                        strsignal(signal_number), ")");
  }
  return absl::StrCat(name, " exited with code ", WEXITSTATUS(wait_status));
}

// 128 + n after signal n, as shells report it.
int ExitCodeOf(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status)
                                  : WEXITSTATUS(wait_status);
}

// Whether one of the signals that stop a job ended a child, or made it exit.
bool WasStopped(int wait_status) {
  return StopsTheJob(ExitCodeOf(wait_status) - 128);
}

// Arguments of exec and of the steps before it, made before fork.
struct Launch {
  std::vector<char*> argv;
  std::vector<char*> environment;
  int output_fd;
  int error_fd;
  // Null: the child stays in the group of its parent.
  const ProcessGuard* guard;
};

// The environment of this process with the variables of `spec`. The result
// points into `storage`, and to variables of this process.
std::vector<char*> EnvironmentOf(const ChildSpec& spec,
                                 std::vector<std::string>& storage) {
  absl::flat_hash_set<std::string_view> replaced;
  for (const auto& [name, value] : spec.environment) {
    storage.push_back(absl::StrCat(name, "=", value));
    replaced.insert(name);
  }
  std::vector<char*> environment;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text(*variable);
    if (!replaced.contains(text.substr(0, text.find('=')))) {
      environment.push_back(*variable);
    }
  }
  for (std::string& variable : storage) environment.push_back(variable.data());
  environment.push_back(nullptr);
  return environment;
}

// Runs between fork and exec, so it makes only async-signal-safe calls. Returns
// only if the executable could not be started.
void BecomeChild(const Launch& launch, pid_t parent, const sigset_t& mask) {
  // The kernel kills the child when its parent ends for any reason.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  if (launch.guard != nullptr) {
    setpgid(0, 0);
    launch.guard->Watch(getpid());
  }
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  const int null = open("/dev/null", O_RDONLY);
  if (null >= 0) {
    dup2(null, STDIN_FILENO);
    if (null != STDIN_FILENO) close(null);
  }
  if (launch.output_fd >= 0) dup2(launch.output_fd, STDOUT_FILENO);
  if (launch.error_fd >= 0) dup2(launch.error_fd, STDERR_FILENO);
  execve(launch.argv[0], launch.argv.data(), launch.environment.data());
}

// The children of this process, those of all its threads.
std::vector<pid_t> ChildrenOfThisProcess() {
  std::vector<pid_t> children;
  std::error_code error;
  for (const auto& task :
       std::filesystem::directory_iterator("/proc/self/task", error)) {
    std::ifstream file(task.path() / "children");
    for (pid_t child = 0; file >> child;) children.push_back(child);
  }
  return children;
}

}  // namespace

void Supervisor::BlockSignals() {
  // The kernel reaps the children of a process that ignores SIGCHLD.
  if (IsIgnored(SIGCHLD)) std::signal(SIGCHLD, SIG_DFL);
  const sigset_t set = SupervisedSignals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

int Supervisor::AwaitStopSignal(absl::Duration timeout) {
  const sigset_t signals = SupervisedSignals();
  const timespec left = absl::ToTimespec(timeout);
  const int received = sigtimedwait(&signals, nullptr, &left);
  return StopsTheJob(received) ? received : 0;
}

absl::StatusOr<std::unique_ptr<Supervisor>> Supervisor::Start(
    const std::vector<ChildSpec>& children, SupervisorOptions options) {
  BlockSignals();
  std::unique_ptr<Supervisor> supervisor(new Supervisor(std::move(options)));
  if (supervisor->options_.contain_descendants) {
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    ASSIGN_OR_RETURN(supervisor->guard_, ProcessGuard::Start());
  }
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
  std::vector<std::string> variables;
  Launch launch{.argv = {},
                .environment = EnvironmentOf(spec, variables),
                .output_fd = spec.output_fd,
                .error_fd = spec.error_fd,
                .guard = guard_.get()};
  for (const std::string& argument : spec.command) {
    launch.argv.push_back(const_cast<char*>(argument.c_str()));
  }
  launch.argv.push_back(nullptr);

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
    BecomeChild(launch, parent, empty_mask);
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
    if (guard_ != nullptr) guard_->Forget(pid);
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
    if (!child.running) continue;
    if (guard_ != nullptr) guard_->Forget(child.pid);
    waitpid(child.pid, nullptr, 0);
  }
  if (options_.contain_descendants) KillOrphans();
}

int Supervisor::num_running() const {
  return static_cast<int>(
      std::count_if(children_.begin(), children_.end(),
                    [](const Child& child) { return child.running; }));
}

void Supervisor::Signal(int signal_number) {
  for (const Child& child : children_) {
    if (!child.running) continue;
    kill(guard_ != nullptr ? -child.pid : child.pid, signal_number);
  }
}

void Supervisor::Stop() {
  stop_requested_ = true;
  // Ends the wait for a signal.
  pthread_kill(waiter_, SIGCHLD);
}

void Supervisor::Reap() {
  if (guard_ != nullptr) return ReapAll();
  for (Child& child : children_) {
    int wait_status = 0;
    if (child.running && waitpid(child.pid, &wait_status, WNOHANG) > 0) {
      NoteEnd(child, wait_status);
    }
  }
}

void Supervisor::ReapAll() {
  siginfo_t info = {};
  while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid != 0) {
    const pid_t pid = info.si_pid;
    const auto child = std::find_if(
        children_.begin(), children_.end(),
        [pid](const Child& each) { return each.running && each.pid == pid; });
    if (child != children_.end()) {
      // While the child is not reaped, its number is that of its group.
      kill(-pid, SIGKILL);
      guard_->Forget(pid);
    }
    int wait_status = 0;
    waitpid(pid, &wait_status, 0);
    if (child != children_.end()) NoteEnd(*child, wait_status);
    info = {};
  }
}

void Supervisor::KillOrphans() {
  while (true) {
    bool found = false;
    for (const pid_t pid : ChildrenOfThisProcess()) {
      if (guard_ != nullptr && pid == guard_->pid()) continue;
      // Its children become children of this process.
      kill(pid, SIGKILL);
      found |= waitpid(pid, nullptr, 0) == pid;
    }
    if (!found) return;
  }
}

void Supervisor::NoteEnd(Child& child, int wait_status) {
  child.running = false;
  if (ExitCodeOf(wait_status) != 0) NoteFailure(child, wait_status);
}

void Supervisor::NoteFailure(const Child& child, int wait_status) {
  // A child that ends after the order to stop has not failed.
  if (stop_signal_ != 0 || stop_requested_) return;
  const bool is_consequence =
      WIFEXITED(wait_status) &&
      WEXITSTATUS(wait_status) == options_.consequence_exit_code;
  if (!first_failure_.ok() && (is_consequence || !first_is_consequence_)) {
    return;
  }
  failure_ =
      ChildFailure{static_cast<size_t>(&child - children_.data()),
                   ExitCodeOf(wait_status), Describe(child.name, wait_status)};
  first_failure_ = absl::AbortedError(failure_->description);
  first_was_stopped_ = WasStopped(wait_status);
  first_is_consequence_ = is_consequence;
}

void Supervisor::TellFailure() {
  if (!failure_.has_value() || failure_is_told_) return;
  failure_is_told_ = true;
  if (options_.on_failure != nullptr) options_.on_failure(*failure_);
}

void Supervisor::NoteStopSignal(int signal_number) {
  // Ctrl-C sends SIGINT to the children too, which may end first.
  if (first_failure_.ok() || (stop_signal_ == 0 && first_was_stopped_)) {
    first_failure_ = absl::CancelledError(
        absl::StrCat("stopped by ", strsignal(signal_number)));
    failure_.reset();
  }
  stop_signal_ = signal_number;
}

absl::Status Supervisor::Wait() {
  const sigset_t signals = SupervisedSignals();
  enum class Stage { kRunning, kNoticing, kTerminating, kKilled };
  Stage stage = Stage::kRunning;
  SteadyClock::time_point next_stage_at = SteadyClock::time_point::max();
  int stop_by = SIGTERM;
  Reap();
  while (num_running() > 0) {
    if (stage == Stage::kRunning && stop_requested_) {
      if (first_failure_.ok()) first_failure_ = absl::CancelledError("stopped");
      stage = Stage::kNoticing;
      next_stage_at = SteadyClock::now();
    }
    if (stage == Stage::kRunning && !first_failure_.ok()) {
      stage = Stage::kNoticing;
      next_stage_at = SteadyClock::now() +
                      absl::ToChronoNanoseconds(options_.notice_period);
    }
    if (SteadyClock::now() >= next_stage_at) {
      if (stage == Stage::kNoticing) {
        stage = Stage::kTerminating;
        Signal(stop_by);
        TellFailure();
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
    const timespec timeout = ToTimespec(left);
    const int received = sigtimedwait(&signals, nullptr, &timeout);
    if (StopsTheJob(received)) {
      NoteStopSignal(received);
      // Children in the group of this process have got Ctrl-C themselves.
      if (options_.contain_descendants) stop_by = received;
      stage = Stage::kNoticing;
      next_stage_at = SteadyClock::now();
    }
    Reap();
  }
  // The signal that stopped all children may still be pending here.
  const timespec now = {};
  if (first_was_stopped_ && stop_signal_ == 0) {
    const int received = sigtimedwait(&signals, nullptr, &now);
    if (StopsTheJob(received)) NoteStopSignal(received);
  }
  if (options_.contain_descendants) KillOrphans();
  TellFailure();
  return first_failure_;
}

}  // namespace hawser::launch
