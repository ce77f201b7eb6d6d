// Handle of a worker process (fault_worker.cc) in a fault test.

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
  // Empty: the address that the worker listens on.
  std::string advertise_address = {};
  // If true, the worker uses shared memory where it can.
  bool same_host = true;
  // The user id that the process changes to; 0: that of the test.
  int uid = 0;
  // Limits after which the worker declares others lost. heartbeat_interval is
  // not used.
  rpc::LivenessOptions liveness = {};
};

// A worker process. The destructor kills it with SIGKILL. Its standard error is
// that of the test. Not thread-safe.
class WorkerProcess {
 public:
  explicit WorkerProcess(const WorkerProcessOptions& options);
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  // The next reported line; empty if the process ended or `limit` passed.
  std::optional<std::string> ReadLine(absl::Duration limit = absl::Seconds(30));

  // Waits until the worker has joined. If it does not, fails the test with the
  // reported line and returns false.
  bool AwaitReady();

  // The advertised address. Valid after AwaitReady.
  const std::string& address() const { return address_; }
  // 16 hexadecimal digits. Valid after AwaitReady.
  const std::string& incarnation() const { return incarnation_; }

  // Sends a signal. After SIGSTOP, waits until the process has stopped.
  void Signal(int signal);

  // The exit code, 128 + n for signal n, or -1 if the process still runs after
  // `limit`.
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
