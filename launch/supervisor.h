#ifndef HAWSER_LAUNCH_SUPERVISOR_H_
#define HAWSER_LAUNCH_SUPERVISOR_H_

#include <pthread.h>
#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "launch/process_guard.h"

namespace hawser::launch {

// Exit code of a process that ended because another one has failed or cannot be
// reached.
inline constexpr int kConsequenceExitCode = 3;

// A child process: its name in errors, and its command line, which begins with
// the path of the executable.
struct ChildSpec {
  std::string name;
  std::vector<std::string> command;
  // Variables that the child has besides those of this process, which they
  // replace: name and value.
  std::vector<std::pair<std::string, std::string>> environment = {};
  // Descriptors that become the child's standard output and standard error.
  // Start() does not close them. -1: those of this process.
  int output_fd = -1;
  int error_fd = -1;
};

// The end of the child that failed first.
struct ChildFailure {
  // Index in the list given to Start().
  size_t child = 0;
  // 128 + n after signal n.
  int exit_code = 0;
  // "trainer0 exited with code 7".
  std::string description = {};
};

struct SupervisorOptions {
  // From the first failure to SIGTERM. Within this time the other children can
  // notice the failure and exit with an error themselves.
  absl::Duration notice_period = absl::Seconds(6);
  // From SIGTERM to SIGKILL.
  absl::Duration kill_delay = absl::Seconds(3);
  // Exit code by which a child reports that it failed only because another
  // child did. 0: there is none.
  int consequence_exit_code = 0;
  // Whether processes that the children start end with them. Each child leads a
  // process group, which gets its signals, among them the one that stopped this
  // process, and is killed when the child ends. Processes that left the group
  // are killed when all children have ended; for this the kernel makes this
  // process the parent of orphans (PR_SET_CHILD_SUBREAPER). The process must
  // not have other children. If it is killed, a ProcessGuard kills the groups.
  bool contain_descendants = false;
  // Called by Wait(), at most once, with the failure that it will return, when
  // the notice period has passed or all children have ended. Null: not called.
  std::function<void(const ChildFailure& failure)> on_failure = nullptr;
};

// Child processes run as one job, which fails if any of them fails. No child
// outlives the job.
//
// Children inherit standard output, standard error and the environment, unless
// ChildSpec says otherwise, and get an empty standard input. The kernel kills
// them if the supervising process dies. SIGINT, SIGTERM and SIGHUP sent to this
// process stop the job; SIGHUP does not if the process ignores it (nohup).
//
// Start() blocks SIGCHLD and these signals in the calling thread permanently.
// Call Start() and Wait() from the main thread, and call BlockSignals() before
// starting other threads.
class Supervisor {
 public:
  // Blocks the signals that Wait() reads. Threads started later inherit this
  // mask, so that the kernel does not deliver the signals to them. Must be
  // called from the main thread, before other threads start.
  static void BlockSignals();

  // Waits up to `timeout` for SIGINT, SIGTERM or SIGHUP and returns it; 0 if
  // none came. May return 0 earlier. For the main thread while it has blocked
  // the signals and no Supervisor waits.
  static int AwaitStopSignal(absl::Duration timeout);

  // Starts every child. If a child cannot be started, the previous ones are
  // killed and the error names it: kNotFound, kPermissionDenied or
  // kResourceExhausted.
  static absl::StatusOr<std::unique_ptr<Supervisor>> Start(
      const std::vector<ChildSpec>& children, SupervisorOptions options = {});

  // Kills the children that still run and waits until they have ended.
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  // Blocks until every child has ended. OK if all exited with 0. Otherwise
  // returns the first failure that is not the consequence of another one, with
  // the child's name and exit code or signal:
  //   kAborted    a child failed.
  //   kCancelled  before a child failed by itself, this process received
  //               SIGINT, SIGTERM or SIGHUP, see stop_signal(), or Stop() was
  //               called.
  absl::Status Wait();

  // Makes Wait() stop the job: SIGTERM, then SIGKILL. Thread-safe; the object
  // must outlive the call.
  void Stop();

  // The last SIGINT, SIGTERM or SIGHUP that Wait() has received; 0 if none.
  int stop_signal() const { return stop_signal_; }

  // The failure that Wait() has returned as kAborted.
  const std::optional<ChildFailure>& failure() const { return failure_; }

 private:
  struct Child {
    std::string name;
    pid_t pid;
    bool running;
  };

  explicit Supervisor(SupervisorOptions options)
      : options_(std::move(options)), waiter_(pthread_self()) {}

  absl::Status Spawn(const ChildSpec& spec);
  // Records the children that have ended.
  void Reap();
  void ReapAll();
  void NoteEnd(Child& child, int wait_status);
  // Kills the processes that the kernel has made children of this one.
  void KillOrphans();
  void Signal(int signal_number);
  int num_running() const;

  // Records the failure of a child that has ended.
  void NoteFailure(const Child& child, int wait_status);
  void NoteStopSignal(int signal_number);
  // Calls on_failure if there is a failure and it was not called yet.
  void TellFailure();

  const SupervisorOptions options_;
  // The thread that calls Start() and Wait().
  const pthread_t waiter_;
  // Null unless descendants are contained.
  std::unique_ptr<ProcessGuard> guard_;
  std::atomic<bool> stop_requested_{false};
  std::vector<Child> children_;
  int stop_signal_ = 0;
  absl::Status first_failure_;
  std::optional<ChildFailure> failure_;
  // Whether the child of first_failure_ was stopped by a signal of those that
  // stop a job, or failed because of another child.
  bool first_was_stopped_ = false;
  bool failure_is_told_ = false;
  bool first_is_consequence_ = false;
};

}  // namespace hawser::launch

#endif  // HAWSER_LAUNCH_SUPERVISOR_H_
