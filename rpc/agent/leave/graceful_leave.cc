#include "rpc/agent/leave/graceful_leave.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "async/blocking_region.h"
#include "async/status_macros.h"
#include "async/task_local.h"
#include "rpc/errors/error_detail.h"
#include "rpc/membership/worker_directory.h"

namespace hawser::rpc {
namespace {

// Time for which a barrier holds a thread, and the pause without one that
// follows.
constexpr absl::Duration kBarrierSlice = absl::Milliseconds(100);
constexpr absl::Duration kBarrierPause = absl::Milliseconds(5);
// Interval between checks of the leases of workers that have not arrived.
constexpr absl::Duration kLeaseInterval = absl::Milliseconds(500);
// A lease that was not read for longer is observed anew.
constexpr absl::Duration kMaxLeaseGap = absl::Seconds(2);

}  // namespace

GracefulLeave::GracefulLeave(Options options)
    : options_(std::move(options)),
      state_(*options_.state),
      member_(*options_.member),
      leases_(kMaxLeaseGap) {}

void GracefulLeave::Begin() {
  // The leave does not run under the caller's context, which has a deadline.
  async::TaskContext::Scope detached{async::TaskContext()};
  deadline_ = async::AddDelay(state_.clock().Now(), options_.timeout);
  {
    async::MutexLock lock(&mutex_);
    if (ended_) return;
    timer_ = state_.clock().CallAt(
        deadline_, [self = shared_from_this()] { self->OnDeadline(); });
  }
  AwaitOwnCalls(&GracefulLeave::OnOwnCallsEnded);
}

void GracefulLeave::Abandon() {
  Finish(absl::CancelledError(absl::StrCat(
      ToString(state_.self()), " was shut down before it had left the job")));
}

void GracefulLeave::Finish(absl::Status status) {
  {
    async::MutexLock lock(&mutex_);
    if (std::exchange(ended_, true)) return;
    next_ = nullptr;
    if (timer_.has_value()) state_.clock().Cancel(*timer_);
  }
  promise_.Set(std::move(status));
}

bool GracefulLeave::ended() {
  async::MutexLock lock(&mutex_);
  return ended_;
}

void GracefulLeave::Await(const async::Future<void>& done, Late late,
                          Step next) {
  uint64_t wait = 0;
  {
    async::MutexLock lock(&mutex_);
    if (ended_) return;
    wait = ++num_waits_;
    next_ = next;
    late_ = std::move(late);
  }
  done.OnReady([self = shared_from_this(), wait](const absl::Status& status) {
    self->Resume(wait, status);
  });
  if (state_.clock().Now() >= deadline_) OnDeadline();
}

void GracefulLeave::OnDeadline() {
  Gate::Entry entry(&state_.gate());
  if (!entry) return;
  uint64_t wait = 0;
  Late late;
  {
    async::MutexLock lock(&mutex_);
    if (next_ == nullptr || late_ == nullptr) return;
    wait = num_waits_;
    late = std::exchange(late_, nullptr);
  }
  Resume(wait,
         absl::DeadlineExceededError(absl::StrCat(
             "graceful shutdown of ", ToString(state_.self()), ": ", late())));
}

void GracefulLeave::Resume(uint64_t wait, absl::Status status) {
  Gate::Entry entry(&state_.gate());
  if (!entry) return;
  Step next = nullptr;
  {
    async::MutexLock lock(&mutex_);
    if (wait != num_waits_ || next_ == nullptr) return;
    next = std::exchange(next_, nullptr);
  }
  state_.Post(state_.control_executor(),
              [self = shared_from_this(), next, status = std::move(status)] {
                if (!self->ended()) (self.get()->*next)(status);
              });
}

void GracefulLeave::AwaitOwnCalls(Step next) {
  Await(
      state_.outbound_calls().WhenIdle(),
      [this] {
        return absl::StrCat(state_.outbound_calls().value(),
                            " own calls have not ended");
      },
      next);
}

void GracefulLeave::OnOwnCallsEnded(const absl::Status& status) {
  if (!status.ok()) {
    Finish(status);
    return;
  }
  if (options_.static_group) {
    // Monitored, so that the wait for a worker that died ends.
    all_ = member_.WatchAll();
    for (const WorkerInfo& worker : all_) {
      participants_.push_back(WorkerDirectory::ParticipantOf(worker));
    }
    EnterBarrier("leaving", "", &GracefulLeave::OnAllLeave);
    return;
  }
  OnAllLeave(absl::OkStatus());
}

void GracefulLeave::OnAllLeave(const absl::Status& status) {
  if (!status.ok()) {
    Finish(status);
    return;
  }
  num_undrained_ = options_.services->size();
  DrainNext(absl::OkStatus());
}

void GracefulLeave::DrainNext(const absl::Status& status) {
  status_.Update(status);
  if (num_undrained_ == 0) {
    calls_seen_ = state_.num_calls_made();
    AwaitOwnCalls(options_.static_group ? &GracefulLeave::EnterQuiescenceBarrier
                                        : &GracefulLeave::LeaveDynamicGroup);
    return;
  }
  Service& service = *(*options_.services)[--num_undrained_];
  Await(
      service.Drain(deadline_),
      [name = std::string(service.name())] {
        return absl::StrCat("service ", name, " has not drained");
      },
      &GracefulLeave::DrainNext);
}

void GracefulLeave::LeaveDynamicGroup(const absl::Status& status) {
  status_.Update(status);
  if (!state_.BeginLeaving()) return;
  {
    async::BlockingRegion region;
    status_.Update(member_.Withdraw());
  }
  // From here on peers reject the heartbeats of this worker.
  member_.StopMonitoring();
  Await(
      member_.NotifyPeers(deadline_), [] { return "peers have not answered"; },
      &GracefulLeave::AwaitInboundCalls);
}

// A peer that did not reply learns of the departure from the log.
void GracefulLeave::AwaitInboundCalls(const absl::Status&) {
  for (size_t i = options_.services->size(); i > 0; --i) {
    (*options_.services)[i - 1]->OnLeft();
  }
  Await(
      state_.inbound_calls().WhenIdle(),
      [this] {
        return absl::StrCat(state_.inbound_calls().value(),
                            " inbound calls have not ended");
      },
      &GracefulLeave::End);
}

void GracefulLeave::End(const absl::Status& status) {
  status_.Update(status);
  Finish(status_);
}

void GracefulLeave::EnterBarrier(std::string_view barrier,
                                 std::string_view payload, Step next) {
  barrier_.emplace(member_.BarrierOf(barrier));
  payload_ = std::string(payload);
  arrived_ = false;
  after_barrier_ = next;
  next_lease_check_ = async::AddDelay(state_.clock().Now(), kLeaseInterval);
  PollBarrier(absl::OkStatus());
}

// Returns whether all workers have arrived; kUnavailable or kDeadlineExceeded
// without an ErrorDetail if the store does not reply.
absl::StatusOr<bool> GracefulLeave::CheckBarrier(bool late) {
  async::BlockingRegion region;
  if (!arrived_) {
    RETURN_IF_ERROR(barrier_->Arrive(
        WorkerDirectory::ParticipantOf(state_.self()), payload_));
    arrived_ = true;
  }
  const absl::Status status = barrier_->Await(
      participants_, late ? absl::ZeroDuration() : kBarrierSlice);
  if (status.ok()) {
    if (!payload_.empty()) {
      ASSIGN_OR_RETURN(payloads_, barrier_->Payloads(participants_));
    }
    return true;
  }
  // A worker that has arrived must not fail because another ended at once.
  RETURN_IF_ERROR(member_.CheckPeers());
  if (late || !absl::IsDeadlineExceeded(status)) return status;
  if (state_.clock().Now() >= next_lease_check_) RETURN_IF_ERROR(CheckLeases());
  return false;
}

// Detects a worker that dies before it arrives. In the last barrier only the
// leases show that, since the liveness monitor is stopped.
absl::Status GracefulLeave::CheckLeases() {
  const async::MonotonicTime now = state_.clock().Now();
  next_lease_check_ = async::AddDelay(now, kLeaseInterval);
  ASSIGN_OR_RETURN(const std::vector<size_t> missing,
                   barrier_->Missing(participants_));
  for (const size_t i : missing) {
    const WorkerInfo& worker = all_[i];
    ASSIGN_OR_RETURN(const std::string count,
                     member_.ReadLease(worker.incarnation));
    const absl::Duration limit = options_.silent_limit;
    if (leases_.Observe(worker.incarnation, count, now) < limit) continue;
    return WithErrorDetail(
        absl::UnavailableError(
            absl::StrCat(ToString(worker), " did not renew its lease for ",
                         absl::FormatDuration(limit), " while it left")),
        worker, /*maybe_applied=*/false);
  }
  return absl::OkStatus();
}

void GracefulLeave::PollBarrier(const absl::Status& status) {
  const bool late = !status.ok();
  absl::StatusOr<bool> all = CheckBarrier(late);
  const bool answered = all.ok() || GetErrorDetail(all.status()).has_value() ||
                        !(absl::IsUnavailable(all.status()) ||
                          absl::IsDeadlineExceeded(all.status()));
  // The process hosting the store may see the barrier complete and exit first.
  const bool store_went = !answered && last_barrier_ && arrived_;
  if (store_went) all = true;
  if (late || store_went || (answered && all.value_or(true))) {
    (this->*after_barrier_)(all.status());
    return;
  }
  async::Promise<void> looked;
  async::Future<void> look = looked.future();
  state_.clock().CallAfter(
      kBarrierPause,
      [looked = std::move(looked)]() mutable { looked.Set(absl::OkStatus()); });
  Await(
      look, [] { return "the others have not arrived"; },
      &GracefulLeave::PollBarrier);
}

void GracefulLeave::EnterQuiescenceBarrier(const absl::Status& status) {
  status_.Update(status);
  const uint64_t calls = state_.num_calls_made();
  const bool quiet = round_ > 0 && calls == calls_seen_;
  calls_seen_ = calls;
  EnterBarrier(absl::StrCat("quiescence", round_),
               quiet || !status_.ok() ? "yes" : "no",
               &GracefulLeave::OnQuiescenceBarrier);
}

void GracefulLeave::OnQuiescenceBarrier(const absl::Status& status) {
  if (!status.ok()) {
    End(status);
  } else if (std::find(payloads_.begin(), payloads_.end(), "no") !=
             payloads_.end()) {
    ++round_;
    AwaitOwnCalls(&GracefulLeave::EnterQuiescenceBarrier);
  } else {
    LeaveStaticGroup();
  }
}

void GracefulLeave::LeaveStaticGroup() {
  {
    async::BlockingRegion region;
    // From here on peers may stop at any time.
    member_.StopMonitoring();
    member_.StopMembership();
    status_.Update(member_.Withdraw());
  }
  last_barrier_ = true;
  EnterBarrier("left", "", &GracefulLeave::End);
}

}  // namespace hawser::rpc
