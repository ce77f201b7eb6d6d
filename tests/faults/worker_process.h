// Handle of a worker process (fault_worker.cc) in a fault test.

#ifndef HAWSER_TESTS_FAULTS_WORKER_PROCESS_H_
#define HAWSER_TESTS_FAULTS_WORKER_PROCESS_H_

#include <cstddef>
#include <string>

#include "rpc/agent/agent_options.h"
#include "tests/faults/reporting_process.h"

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
  // As for ReportingProcess.
  size_t max_data_bytes = 0;
  // Limits after which the worker declares others lost. heartbeat_interval is
  // not used.
  rpc::LivenessOptions liveness = {};
};

// A worker process. Not thread-safe.
class WorkerProcess final : public ReportingProcess {
 public:
  explicit WorkerProcess(const WorkerProcessOptions& options);

  // Waits until the worker has joined. If it does not, fails the test with the
  // reported line and returns false.
  bool AwaitReady();

  // The advertised address. Valid after AwaitReady.
  const std::string& address() const { return address_; }
  // 16 hexadecimal digits. Valid after AwaitReady.
  const std::string& incarnation() const { return incarnation_; }

 private:
  std::string address_;
  std::string incarnation_;
};

}  // namespace hawser::tests

#endif  // HAWSER_TESTS_FAULTS_WORKER_PROCESS_H_
