#ifndef HAWSER_LAUNCH_SUPERVISOR_H_
#define HAWSER_LAUNCH_SUPERVISOR_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace hawser::launch {

// A child process: its name in errors, and its command line, which begins with
// the path of the executable.
struct ChildSpec {
  std::string name;
  std::vector<std::string> command;
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
};

// Child processes run as one job, which fails if any of them fails. No child
// outlives the job.
//
// Children inherit standard output, standard error and the environment, and get
// an empty standard input. The kernel kills them if the supervising process
// dies. SIGINT and SIGTERM sent to this process stop the job.
//
// Start() blocks SIGCHLD, SIGINT and SIGTERM in the calling thread permanently.
// Call Start() and Wait() from the main thread, and call BlockSignals() before
// starting other threads.
class Supervisor {
 public:
  // Blocks the signals that Wait() reads. Threads started later inherit this
  // mask, so that the kernel does not deliver the signals to them. Must be
  // called from the main thread, before other threads start.
  static void BlockSignals();

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
  //   kCancelled  this process received SIGINT or SIGTERM before a child failed
  //               by itself; see stop_signal().
  absl::Status Wait();

  // The last SIGINT or SIGTERM that Wait() has received; 0 if none.
  int stop_signal() const { return stop_signal_; }

 private:
  struct Child {
    std::string name;
    pid_t pid;
    bool running;
  };

  explicit Supervisor(SupervisorOptions options) : options_(options) {}

  absl::Status Spawn(const ChildSpec& spec);
  void Reap();
  void Signal(int signal_number);
  int num_running() const;

  // Records the failure of a child that has ended.
  void NoteFailure(const Child& child, int wait_status);
  void NoteStopSignal(int signal_number);

  const SupervisorOptions options_;
  std::vector<Child> children_;
  int stop_signal_ = 0;
  absl::Status first_failure_;
  // Whether the child of first_failure_ was stopped by SIGINT or SIGTERM, or
  // failed because of another child.
  bool first_was_stopped_ = false;
  bool first_is_consequence_ = false;
};

}  // namespace hawser::launch

#endif  // HAWSER_LAUNCH_SUPERVISOR_H_
