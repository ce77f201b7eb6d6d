#ifndef HAWSER_EXAMPLES_MNIST_PS_JOB_MEMBER_H_
#define HAWSER_EXAMPLES_MNIST_PS_JOB_MEMBER_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "examples/mnist_ps/job_monitor.h"
#include "examples/mnist_ps/options.h"
#include "launch/worker.h"
#include "rpc/functions/function_registry.h"
#include "rpc/identity/call_options.h"
#include "store/store.h"

namespace hawser::examples::mnist_ps {

// A server's or trainer's worker, which knows when the job has ended.
class JobMember {
 public:
  // Joins the job that `options` describe; ranks are those of the servers
  // first, then those of the trainers. Others may call what `registry` holds,
  // which gets kEndJob besides and must outlive this object.
  static absl::StatusOr<std::unique_ptr<JobMember>> Join(
      const Options& options, rpc::FunctionRegistry& registry);

  rpc::Agent& agent() { return worker_->agent(); }
  JobMonitor& monitor() { return *monitor_; }

  // Tells every other worker that the job is done.
  absl::Status EndJobEverywhere();

  // Leaves the job, together with the others if `outcome` is OK. Otherwise
  // tells them why, so that they name the same cause and not this process, and
  // leaves at once. Returns what went wrong: a lost worker rather than the
  // calls that failed for it.
  absl::Status Leave(const absl::Status& outcome);

 private:
  JobMember() = default;

  absl::Status NotifyOthers(const rpc::CallOptions& options,
                            const std::string& reason);

  JobMonitor* monitor_ = nullptr;  // Of the worker's agent.
  // Where somebody else serves the store. Outlives the worker.
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<launch::Worker> worker_;
};

}  // namespace hawser::examples::mnist_ps

#endif  // HAWSER_EXAMPLES_MNIST_PS_JOB_MEMBER_H_
