#include "launch/job/job_member.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/future.h"
#include "async/join.h"
#include "async/mutex.h"
#include "async/status_macros.h"
#include "launch/basic_worker.h"
#include "launch/job/job_monitor.h"
#include "launch/job/job_options.h"
#include "launch/worker_options.h"
#include "net/auth/credentials.h"
#include "net/auth/identity.h"
#include "rpc/agent/agent.h"
#include "rpc/agent/current_call.h"
#include "rpc/agent/service.h"
#include "rpc/functions/function.h"
#include "rpc/functions/function_registry.h"
#include "rpc/identity/call_options.h"
#include "rpc/identity/worker_info.h"
#include "store/barrier.h"
#include "store/open_store.h"

namespace hawser::launch {
namespace {

constexpr auto kReportInterval = std::chrono::milliseconds(100);
constexpr absl::Duration kStoreTimeout = absl::Seconds(30);

// On the first process of a role: reports how many samples another one has
// processed so far, and whether these are all. Arguments: its index, number of
// samples, and whether it has finished.
inline constexpr rpc::Function<void(int64_t, int64_t, bool)> kReportSamples{
    "hawser.launch.ReportSamples"};

// On all workers: ends the job. The argument is empty if its work is done,
// otherwise the reason why it cannot continue.
inline constexpr rpc::Function<void(std::string)> kEndJob{
    "hawser.launch.EndJob"};

}  // namespace

absl::Status JobMember::Register(rpc::FunctionRegistry& registry) {
  RETURN_IF_ERROR(registry.Register(
      kEndJob, [monitor = monitor_](const std::string& reason) {
        monitor->End(reason.empty() ? absl::OkStatus()
                                    : absl::UnavailableError(reason));
      }));
  if (!is_first()) return absl::OkStatus();
  return registry.Register(
      kReportSamples, [this](int64_t index, int64_t samples, bool finished) {
        return finished ? counts_.Finish(index, samples)
                        : counts_.Report(index, samples);
      });
}

absl::StatusOr<std::unique_ptr<JobMember>> JobMember::Join(
    const JobOptions& options,
    std::vector<std::unique_ptr<rpc::Service>> services,
    rpc::FunctionRegistry* registry) {
  std::unique_ptr<JobMember> member(new JobMember(options));
  if (registry == nullptr) registry = &member->own_registry_;
  auto monitor = std::make_unique<JobMonitor>();
  member->monitor_ = monitor.get();
  RETURN_IF_ERROR(member->Register(*registry));
  const net::Identity identity = options.identity();
  WorkerOptions worker;
  worker.identity.name = identity.worker;
  worker.identity.job = identity.job;
  worker.identity.rank = options.rank();
  worker.identity.world_size = options.world_size();
  worker.network.credentials = options.credentials;
  if (!options.bind_address.empty()) {
    worker.network.bind_address = options.bind_address;
  }
  worker.network.interface = options.interface;
  if (options.external_store) {
    ASSIGN_OR_RETURN(auto credentials,
                     net::Credentials::Create(options.credentials, identity));
    ASSIGN_OR_RETURN(member->store_,
                     store::OpenStore(options.master,
                                      {.credentials = std::move(credentials)}));
    worker.meeting_place.store = member->store_.get();
  } else {
    worker.meeting_place.url = options.master;
  }
  worker.limits.liveness.silent_limit = options.silent_limit;
  worker.registry = registry;
  worker.services = std::move(services);
  worker.services.push_back(std::move(monitor));
  ASSIGN_OR_RETURN(member->worker_, BasicWorker::Start(std::move(worker)));
  return member;
}

JobMember::CallScope::CallScope(JobMember& member)
    : waiting_(*member.monitor_,
               [cancellation = cancellation_] { cancellation->Cancel(); }),
      scope_(rpc::CurrentCall(&member.agent(), member.agent().info(),
                              async::kNever, cancellation_)) {}

absl::Status JobMember::Meet(const std::string& name) {
  // Names of earlier jobs in the same store do not count.
  ASSIGN_OR_RETURN(const rpc::WorkerInfo first,
                   agent().FindWorker(WorkerName(options_.role, 0)));
  store::Barrier barrier(
      &worker_->store(),
      absl::StrCat("meet/", rpc::ToString(first.incarnation), "/", name),
      kStoreTimeout);
  RETURN_IF_ERROR(barrier.Arrive({options_.name(), options_.name()}, ""));
  if (!is_first()) {
    absl::Status met = WaitFor(barrier.WhenComplete()).status();
    if (!absl::IsCancelled(met)) return met;
    // The job has ended, perhaps right after the meeting.
    ASSIGN_OR_RETURN(const bool complete, barrier.IsComplete());
    if (complete) return absl::OkStatus();
    return absl::CancelledError(
        absl::StrCat("the job has ended before all met for \"", name, "\""));
  }
  std::vector<store::Barrier::Participant> all;
  for (const std::string& worker : options_.workers(options_.role)) {
    all.push_back({worker, worker});
  }
  RETURN_IF_ERROR(WaitFor(barrier.WhenAllArrived(all)));
  return barrier.Complete("");
}

void JobMember::KeepUntilLeft(std::shared_ptr<const void> object) {
  const async::MutexLock lock(&mutex_);
  kept_.push_back(std::move(object));
}

int64_t JobMember::AddSamples(int64_t samples) {
  samples_ += samples;
  if (is_first()) {
    counts_.Report(0, samples_).IgnoreError();
    return counts_.total();
  }
  const auto now = std::chrono::steady_clock::now();
  if (now >= next_report_ && (!report_.has_value() || report_->ready())) {
    next_report_ = now + kReportInterval;
    // A lost report is made up for by the next one.
    report_ = agent().Async(WorkerName(options_.role, 0), kReportSamples,
                            int64_t{options_.index}, samples_, false);
  }
  return samples_;
}

absl::StatusOr<int64_t> JobMember::FinishSamples() {
  if (is_first()) {
    RETURN_IF_ERROR(counts_.Finish(0, samples_));
    return WaitFor(counts_.all_finished());
  }
  RETURN_IF_ERROR(
      WaitFor(agent().Async(WorkerName(options_.role, 0), kReportSamples,
                            int64_t{options_.index}, samples_, true)));
  return samples_;
}

absl::Status JobMember::NotifyOthers(const rpc::CallOptions& options,
                                     const std::string& reason) {
  std::vector<async::Future<void>> calls;
  for (const rpc::WorkerInfo& worker : agent().workers()) {
    if (worker.id == agent().info().id || agent().IsLost(worker)) continue;
    calls.push_back(agent().Async(worker, options, kEndJob, reason));
  }
  return async::JoinAll(std::move(calls)).Wait();
}

absl::Status JobMember::Leave(const absl::Status& outcome) {
  absl::Status cause = monitor_->Check();
  if (cause.ok() &&
      (absl::IsUnavailable(outcome) || absl::IsAborted(outcome))) {
    // A process group notices the end of a process earlier than the job does.
    (void)monitor_->ended().WaitFor(options_.silent_limit);
    cause = monitor_->Check();
  }
  if (cause.ok()) cause = outcome;
  if (cause.ok()) return worker_->Shutdown();
  // Workers that do not receive this in time detect the failure themselves.
  NotifyOthers({.timeout = absl::Seconds(1)}, std::string(cause.message()))
      .IgnoreError();
  worker_->Shutdown(/*graceful=*/false).IgnoreError();
  return cause;
}

}  // namespace hawser::launch
