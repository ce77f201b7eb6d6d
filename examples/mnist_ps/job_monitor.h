#ifndef HAWSER_EXAMPLES_MNIST_PS_JOB_MONITOR_H_
#define HAWSER_EXAMPLES_MNIST_PS_JOB_MONITOR_H_

#include <string_view>

#include "absl/status/status.h"
#include "async/future.h"
#include "rpc/agent/service.h"

namespace hawser::examples::mnist_ps {

// Record of the end of the job. The job ends when a worker is lost, since this
// example requires all of its workers.
//
// Thread-safe.
class JobMonitor : public rpc::Service {
 public:
  std::string_view name() const override { return "mnist_ps.JobMonitor"; }
  absl::Status Start(rpc::ServiceHost&) override { return absl::OkStatus(); }
  void OnWorkerLost(const rpc::WorkerInfo& worker,
                    const absl::Status& status) override;

  // Records that the job has ended: OK if the training has finished, otherwise
  // an error, such as the loss of a worker. Calls after the first one have no
  // effect.
  void End(const absl::Status& status) { end_.Set(status); }

  // Completes with the status passed to End().
  async::Future<void> ended() const { return ended_; }

  // OK while the job runs.
  absl::Status Check() const;

 private:
  async::Promise<void> end_;
  // Stored, so that every reader gets a copy of the result.
  const async::Future<void> ended_ = end_.future();
};

}  // namespace hawser::examples::mnist_ps

#endif  // HAWSER_EXAMPLES_MNIST_PS_JOB_MONITOR_H_
