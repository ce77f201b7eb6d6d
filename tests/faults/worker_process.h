// A worker of a fault test (fault_worker.cc) as the test that starts and kills
// it holds it.

#ifndef HAWSER_TESTS_FAULTS_WORKER_PROCESS_H_
#define HAWSER_TESTS_FAULTS_WORKER_PROCESS_H_

#include <sys/types.h>

#include <optional>
#include <string>

#include "absl/time/time.h"
#include "rpc/agent/agent_options.h"

namespace hawser::tests {

struct WorkerProcessOptions {
  // URL of the job's store.
  std::string store = {};
  std::string name = {};
  int rank = 0;
  std::string job = "faults";
  std::string bind_address = "127.0.0.1:0";
  // Empty: where it serves.
  std::string advertise_address = {};
  // Whether it leaves the socket for shared memory where it can.
  bool same_host = true;
  // The user that it becomes once it runs; 0: the test's.
  int uid = 0;
  // When others count as lost; all but heartbeat_interval.
  rpc::LivenessOptions liveness = {};
};

// Starts the process; SIGKILL ends it with this object. What it writes to
// standard error goes to the test's. Not thread-safe.
class WorkerProcess {
 public:
  explicit WorkerProcess(const WorkerProcessOptions& options);
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  // The next line that it reports; none if it ended or `limit` passed.
  std::optional<std::string> ReadLine(absl::Duration limit = absl::Seconds(30));

  // Waits until it has joined; false, with a failure of the test that says what
  // came instead, if it does not.
  bool AwaitReady();

  // After AwaitReady: where others reach it.
  const std::string& address() const { return address_; }
  // As it is written: 16 digits.
  const std::string& incarnation() const { return incarnation_; }

  // After SIGSTOP it stalls.
  void Signal(int signal);

  // The exit code, 128 + n for signal n, or -1 if it runs still after `limit`.
  int Wait(absl::Duration limit = absl::Seconds(30));

 private:
  pid_t pid_ = -1;
  // Readable when the process ends.
  int process_ = -1;
  int reports_ = -1;
  std::string unread_;
  std::optional<int> exit_code_;
  std::string address_;
  std::string incarnation_;
};

}  // namespace hawser::tests

#endif  // HAWSER_TESTS_FAULTS_WORKER_PROCESS_H_
