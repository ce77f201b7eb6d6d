#ifndef HAWSER_LAUNCH_RUN_NODE_PROCESSES_H_
#define HAWSER_LAUNCH_RUN_NODE_PROCESSES_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "launch/run/console.h"
#include "launch/run/job_failure.h"
#include "launch/run/log_directory.h"
#include "launch/run/output_pump.h"
#include "launch/run/process_plan.h"
#include "launch/run/run_options.h"
#include "launch/supervisor.h"

namespace hawser::launch {

// Surroundings of the processes of one attempt.
struct NodeProcessesContext {
  AttemptFacts attempt = {};
  // Name of this machine in reports.
  std::string host = {};
  // Null: no stream goes to a file. Must outlive the processes.
  const LogDirectory* logs = nullptr;
  Console* console = nullptr;
  absl::Duration notice_period = absl::ZeroDuration();
  // Called by Wait() with the first failure of a process.
  std::function<void(const JobFailure& failure)> on_failure = nullptr;
};

// The processes of one node in one attempt, with their output.
class NodeProcesses {
 public:
  // Starts all processes. Errors are those of Supervisor::Start and of the log
  // files; FailureOfStart makes them known to all nodes.
  static absl::StatusOr<std::unique_ptr<NodeProcesses>> Start(
      const RunOptions& options, const std::vector<ProcessPlan>& plans,
      NodeProcessesContext context);

  // The failure of a job for an error of Start. Its exit code is 127 if the
  // program does not exist, 126 if it cannot be executed, otherwise 1.
  static JobFailure FailureOfStart(const absl::Status& error);

  // Returns when all processes have ended and their output is written; see
  // Supervisor::Wait.
  absl::Status Wait();
  // See Supervisor::Stop. Thread-safe.
  void Stop() { supervisor_->Stop(); }
  int stop_signal() const { return supervisor_->stop_signal(); }

 private:
  explicit NodeProcesses(NodeProcessesContext context)
      : context_(std::move(context)) {}

  absl::Status StartAll(const RunOptions& options,
                        const std::vector<ProcessPlan>& plans);
  void Report(const ChildFailure& failure);

  const NodeProcessesContext context_;
  std::unique_ptr<OutputPump> pump_;
  std::unique_ptr<Supervisor> supervisor_;
};

}  // namespace hawser::launch

#endif  // HAWSER_LAUNCH_RUN_NODE_PROCESSES_H_
