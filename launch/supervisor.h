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

// A child process: the name errors call it by, and its command line, of which
// the first element is the path of the executable.
struct ChildSpec {
  std::string name;
  std::vector<std::string> command;
};

struct SupervisorOptions {
  // After the first failure the other children have this long to notice it and
  // to end with an error of their own; then they get SIGTERM.
  absl::Duration notice_period = absl::Seconds(6);
  // From SIGTERM to SIGKILL.
  absl::Duration kill_delay = absl::Seconds(3);
};

// Runs child processes as one job that succeeds only as a whole and leaves
// nothing running behind.
//
// Children inherit standard output, standard error and the environment, get an
// empty standard input, and are killed by the kernel if the supervising process
// dies. SIGINT and SIGTERM sent to this process stop the job.
//
// Start() blocks SIGCHLD, SIGINT and SIGTERM in the calling thread for good:
// call it, and Wait(), from the main thread, and start no other thread before
// BlockSignals().
class Supervisor {
 public:
  // Lets threads that start later inherit the signal mask that Wait() needs, so
  // that no signal is delivered to them instead. Main thread, before any other.
  static void BlockSignals();

  // Starts every child. If one cannot be started those before it are killed and
  // the error names it: kNotFound, kPermissionDenied or kResourceExhausted.
  static absl::StatusOr<std::unique_ptr<Supervisor>> Start(
      const std::vector<ChildSpec>& children, SupervisorOptions options = {});

  // Kills what is still running and waits for it.
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  // Blocks until every child has ended. OK if all exited with 0. Otherwise the
  // first failure, by child name and exit code or signal:
  //   kAborted    a child failed.
  //   kCancelled  this process was told to stop by SIGINT or SIGTERM.
  absl::Status Wait();

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

  const SupervisorOptions options_;
  std::vector<Child> children_;
  absl::Status first_failure_;
};

}  // namespace hawser::launch

#endif  // HAWSER_LAUNCH_SUPERVISOR_H_
