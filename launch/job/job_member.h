// A process of a job: its worker, its samples, and the end of the job.

#ifndef HAWSER_LAUNCH_JOB_JOB_MEMBER_H_
#define HAWSER_LAUNCH_JOB_JOB_MEMBER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/clock.h"
#include "async/future.h"
#include "async/mutex.h"
#include "launch/basic_worker.h"
#include "launch/job/job_monitor.h"
#include "launch/job/job_options.h"
#include "launch/job/sample_counts.h"
#include "rpc/agent/current_call.h"
#include "rpc/agent/service.h"
#include "rpc/functions/function_registry.h"
#include "rpc/identity/call_options.h"
#include "rpc/transport/cancellation.h"
#include "store/store.h"

namespace hawser::launch {

// A process of a job that needs all of its processes: it ends when one of them
// says so, or is lost.
//
//   absl::Status Train(JobMember& member) {
//     for (...) {
//       RETURN_IF_ERROR(member.WaitFor(parameters->StepAsync()));
//       member.AddSamples(batch_size);
//     }
//     RETURN_IF_ERROR(member.FinishSamples());
//     return member.EndJob();
//   }
//   ... on trainer 0: member->Leave(Train(*member)); on a server:
//   member->Leave(member->WaitForEnd()); ...
//
// Thread-safe, except for AddSamples and FinishSamples, which belong to one
// thread.
class JobMember {
 public:
  // Joins the job, with these services only. Other workers may call the
  // functions of `registry`, if it is not null; Join adds some to it, and it
  // must outlive the member. Errors are those of BasicWorker::Start.
  static absl::StatusOr<std::unique_ptr<JobMember>> Join(
      const JobOptions& options,
      std::vector<std::unique_ptr<rpc::Service>> services = {},
      rpc::FunctionRegistry* registry = nullptr);

  rpc::Agent& agent() { return worker_->agent(); }
  const JobOptions& options() const { return options_; }

  // OK while the job runs; then the status with which it has ended.
  absl::Status Check() const { return monitor_->Check(); }

  // Waits for `future`, but not beyond the end of the job. Returns the error
  // with which the job has ended rather than one of the future, which may be
  // its consequence.
  template <class T>
  async::Result<T> WaitFor(async::Future<T> future);

  // The calls that this task makes through the agent in the scope end with the
  // job, with kCancelled. Without it, a look-up in a table whose server is lost
  // waits until its timeout for the table to be restored elsewhere.
  class CallScope {
   public:
    explicit CallScope(JobMember& member);

   private:
    const std::shared_ptr<rpc::Cancellation> cancellation_ =
        std::make_shared<rpc::Cancellation>();
    const JobMonitor::Waiting waiting_;
    const rpc::CurrentCall::Scope scope_;
  };

  // Completes with the status with which the job ends: OK if its work is done.
  async::Future<void> ended() const { return monitor_->ended(); }
  absl::Status WaitForEnd() const { return ended().Wait(); }

  // Waits until all processes of this role have called it with `name`, which
  // must be another one each time.
  absl::Status Meet(const std::string& name);

  // Adds samples that this process has processed, and tells the first process
  // of its role, at most every 100 ms. Returns how many all processes of the
  // role have processed, if this is the first one, else how many this one has.
  int64_t AddSamples(int64_t samples);
  // Tells it that this process has processed all of its samples. If this is the
  // first process of its role, waits for the others. Returns what AddSamples
  // does.
  absl::StatusOr<int64_t> FinishSamples();

  // Ends the job for all processes: its work is done.
  absl::Status EndJob() { return NotifyOthers({}, ""); }

  // Keeps `object` until this process has left: for what other processes would
  // take for the cause if its end came before the news why this one leaves.
  // Destroyed before the agent.
  void KeepUntilLeft(std::shared_ptr<const void> object);

  // Leaves the job. If `outcome` is OK, leaves gracefully, together with the
  // other workers. Otherwise notifies them of the error, so that they report
  // the same cause and not the loss of this process, and leaves at once.
  // Returns the cause: the loss of a worker, if there was one, instead of the
  // errors of calls to it. After kUnavailable or kAborted, which may be
  // consequences of a loss, waits for it for JobOptions::silent_limit.
  absl::Status Leave(const absl::Status& outcome);

 private:
  explicit JobMember(const JobOptions& options)
      : options_(options), counts_(options.count(options.role)) {}

  absl::Status Register(rpc::FunctionRegistry& registry);
  absl::Status NotifyOthers(const rpc::CallOptions& options,
                            const std::string& reason);
  bool is_first() const { return options_.index == 0; }

  const JobOptions options_;
  SampleCounts counts_;
  rpc::FunctionRegistry own_registry_;
  JobMonitor* monitor_ = nullptr;  // Owned by the worker's agent.
  // Set if another process serves the store. Outlives the worker.
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<BasicWorker> worker_;
  async::Mutex mutex_;
  // Of KeepUntilLeft.
  std::vector<std::shared_ptr<const void>> kept_ ABSL_GUARDED_BY(mutex_);

  // Of this process.
  int64_t samples_ = 0;
  async::MonotonicTime next_report_{};
  std::optional<async::Future<void>> report_;
};

template <class T>
async::Result<T> JobMember::WaitFor(async::Future<T> future) {
  const JobMonitor::Waiting waiting(*monitor_,
                                    [future] { (void)future.Cancel(); });
  async::Result<T> result = std::move(future).Wait();
  const absl::Status ended = monitor_->Check();
  if (!ended.ok()) return ended;
  return result;
}

}  // namespace hawser::launch

#endif  // HAWSER_LAUNCH_JOB_JOB_MEMBER_H_
