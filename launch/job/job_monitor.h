// Record of the end of a job.

#ifndef HAWSER_LAUNCH_JOB_JOB_MONITOR_H_
#define HAWSER_LAUNCH_JOB_JOB_MONITOR_H_

#include <functional>
#include <list>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "async/future.h"
#include "async/mutex.h"
#include "rpc/agent/service.h"

namespace hawser::launch {

// Record of the end of a job, for a job that ends when a worker is lost.
//
// Thread-safe.
class JobMonitor final : public rpc::Service {
 public:
  std::string_view name() const override { return "job"; }
  absl::Status Start(rpc::ServiceHost&) override { return absl::OkStatus(); }
  void OnWorkerLost(const rpc::WorkerInfo& worker,
                    const absl::Status& status) override;

  // Records that the job has ended: OK if its work is done, otherwise an error,
  // such as the loss of a worker. Calls after the first one have no
  // effect.
  void End(const absl::Status& status);

  // Completes with the status passed to End().
  async::Future<void> ended() const { return ended_; }

  // OK while the job runs.
  absl::Status Check() const;

  // Calls `cancel` at the end of the job, unless it was destroyed before, or
  // now if the job has ended. `cancel` may still run while it is destroyed.
  class Waiting {
   public:
    Waiting(JobMonitor& monitor, std::function<void()> cancel);
    ~Waiting();
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

   private:
    JobMonitor& monitor_;
    std::list<std::function<void()>>::iterator place_;
  };

 private:
  async::Promise<void> end_;
  // Stored, so that every reader gets a copy of the result.
  const async::Future<void> ended_ = end_.future();

  async::Mutex mutex_;
  // Of the Waiting objects.
  std::list<std::function<void()>> cancellations_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::launch

#endif  // HAWSER_LAUNCH_JOB_JOB_MONITOR_H_
