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

// The worker of a server or trainer process. It observes the end of the job.
class JobMember {
 public:
  // Joins the job that `options` describe. Servers have the first ranks,
  // trainers the following ones. Other workers may call the functions of
  // `registry`. Join adds kEndJob to it; it must outlive this object.
  static absl::StatusOr<std::unique_ptr<JobMember>> Join(
      const Options& options, rpc::FunctionRegistry& registry);

  rpc::Agent& agent() { return worker_->agent(); }
  JobMonitor& monitor() { return *monitor_; }

  // Notifies all other workers that the job has finished.
  absl::Status EndJobEverywhere();

  // Leaves the job. If `outcome` is OK, leaves gracefully, together with the
  // other workers. Otherwise notifies them of the error, so that they report
  // the same cause and not the loss of this process, and leaves at once.
  // Returns the cause: the loss of a worker, if there was one, instead of the
  // errors of calls to it.
  absl::Status Leave(const absl::Status& outcome);

 private:
  JobMember() = default;

  absl::Status NotifyOthers(const rpc::CallOptions& options,
                            const std::string& reason);

  JobMonitor* monitor_ = nullptr;  // Owned by the worker's agent.
  // Set if another process serves the store. Outlives the worker.
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<launch::Worker> worker_;
};

}  // namespace hawser::examples::mnist_ps

#endif  // HAWSER_EXAMPLES_MNIST_PS_JOB_MEMBER_H_
