#ifndef HAWSER_EXAMPLES_MNIST_PS_JOB_MONITOR_H_
#define HAWSER_EXAMPLES_MNIST_PS_JOB_MONITOR_H_

#include <string_view>

#include "absl/status/status.h"
#include "async/future.h"
#include "rpc/agent/service.h"

namespace hawser::examples::mnist_ps {

// Ends a process's part in the job when another one is lost: this example's
// job needs all of its workers.
//
// Thread-safe.
class JobMonitor : public rpc::Service {
 public:
  std::string_view name() const override { return "mnist_ps.JobMonitor"; }
  absl::Status Start(rpc::ServiceHost&) override { return absl::OkStatus(); }
  void OnWorkerLost(const rpc::WorkerInfo& worker,
                    const absl::Status& status) override;

  // The job is over as far as this process is concerned: with OK when all is
  // done, or with an error that names a lost worker. Only the first call
  // counts.
  void End(const absl::Status& status) { end_.Set(status); }

  // Completes with what End() was told.
  async::Future<void> ended() const { return ended_; }

  // OK while the job goes on.
  absl::Status Check() const;

 private:
  async::Promise<void> end_;
  // Kept, so that every reader gets a copy of the result.
  const async::Future<void> ended_ = end_.future();
};

}  // namespace hawser::examples::mnist_ps

#endif  // HAWSER_EXAMPLES_MNIST_PS_JOB_MONITOR_H_
