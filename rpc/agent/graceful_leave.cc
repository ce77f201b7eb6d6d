#include "rpc/agent/graceful_leave.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "async/blocking_region.h"
#include "async/join.h"
#include "async/status_macros.h"
#include "async/task_local.h"
#include "rpc/errors/error_detail.h"
#include "rpc/membership/member_event.h"

namespace hawser::rpc {
namespace {

// How long a worker waits for the others at a time, with a thread, and how long
// it then lets the thread go.
constexpr absl::Duration kBarrierSlice = absl::Milliseconds(100);
constexpr absl::Duration kBarrierPause = absl::Milliseconds(5);
// How often it looks at the leases of those that have not arrived.
constexpr absl::Duration kLeaseInterval = absl::Milliseconds(500);
// Leases are watched anew after a look that came later than this.
constexpr absl::Duration kMaxLeaseGap = absl::Seconds(2);

}  // namespace

Agent::Impl::GracefulLeave::GracefulLeave(Impl* impl)
    : impl_(*impl), shared_(impl->shared_), leases_(kMaxLeaseGap) {}

void Agent::Impl::GracefulLeave::Begin() {
  // What the caller runs in, with its deadline, is not the worker's to leave
  // in.
  async::TaskContext::Scope detached{async::TaskContext()};
  deadline_ =
      async::AddDelay(impl_.clock_->Now(), impl_.options_.shutdown_timeout);
  {
    async::MutexLock lock(&mutex_);
    if (ended_) return;
    timer_ = impl_.clock_->CallAt(
        deadline_, [self = shared_from_this()] { self->OnDeadline(); });
  }
  AwaitOwnCalls(&GracefulLeave::OnOwnCallsEnded);
}

void Agent::Impl::GracefulLeave::Abandon() {
  Finish(absl::CancelledError(absl::StrCat(
      ToString(impl_.self_), " was shut down before it had left the job")));
}

void Agent::Impl::GracefulLeave::Finish(absl::Status status) {
  {
    async::MutexLock lock(&mutex_);
    if (std::exchange(ended_, true)) return;
    next_ = nullptr;
    if (timer_.has_value()) impl_.clock_->Cancel(*timer_);
  }
  promise_.Set(std::move(status));
}

bool Agent::Impl::GracefulLeave::ended() {
  async::MutexLock lock(&mutex_);
  return ended_;
}

void Agent::Impl::GracefulLeave::Await(const async::Future<void>& done,
                                       Late late, Step next) {
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
  if (impl_.clock_->Now() >= deadline_) OnDeadline();
}

void Agent::Impl::GracefulLeave::OnDeadline() {
  Gate::Entry entry(&shared_->gate);
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
             "graceful shutdown of ", ToString(impl_.self_), ": ", late())));
}

void Agent::Impl::GracefulLeave::Resume(uint64_t wait, absl::Status status) {
  Gate::Entry entry(&shared_->gate);
  if (!entry) return;
  Step next = nullptr;
  {
    async::MutexLock lock(&mutex_);
    if (wait != num_waits_ || next_ == nullptr) return;
    next = std::exchange(next_, nullptr);
  }
  impl_.Post(*impl_.control_executor_,
             [self = shared_from_this(), next, status = std::move(status)] {
               if (!self->ended()) (self.get()->*next)(status);
             });
}

void Agent::Impl::GracefulLeave::AwaitOwnCalls(Step next) {
  Await(
      impl_.client_calls_.WhenIdle(),
      [this] {
        return absl::StrCat(impl_.num_client_calls(),
                            " own calls have not ended");
      },
      next);
}

void Agent::Impl::GracefulLeave::OnOwnCallsEnded(const absl::Status& status) {
  if (!status.ok()) {
    Finish(status);
    return;
  }
  if (impl_.options_.world_size.has_value()) {
    // So that a wait for one that died ends.
    for (const auto& peer : impl_.peers_.All()) impl_.Watch(peer);
    all_ = impl_.workers();
    for (const WorkerInfo& worker : all_) {
      participants_.push_back(WorkerDirectory::ParticipantOf(worker));
    }
    EnterBarrier("leaving", "", &GracefulLeave::OnAllLeave);
    return;
  }
  OnAllLeave(absl::OkStatus());
}

void Agent::Impl::GracefulLeave::OnAllLeave(const absl::Status& status) {
  if (!status.ok()) {
    Finish(status);
    return;
  }
  num_undrained_ = impl_.services_.size();
  DrainNext(absl::OkStatus());
}

void Agent::Impl::GracefulLeave::DrainNext(const absl::Status& status) {
  status_.Update(status);
  if (num_undrained_ == 0) {
    calls_seen_ = impl_.num_calls_made_.load(std::memory_order_relaxed);
    AwaitOwnCalls(impl_.options_.world_size.has_value()
                      ? &GracefulLeave::EnterQuiescenceBarrier
                      : &GracefulLeave::LeaveDynamicGroup);
    return;
  }
  Service& service = *impl_.services_[--num_undrained_];
  Await(
      service.Drain(deadline_),
      [name = std::string(service.name())] {
        return absl::StrCat("service ", name, " has not drained");
      },
      &GracefulLeave::DrainNext);
}

void Agent::Impl::GracefulLeave::LeaveDynamicGroup(const absl::Status& status) {
  status_.Update(status);
  Phase running = Phase::kRunning;
  if (!impl_.phase_.compare_exchange_strong(running, Phase::kLeaving)) return;
  {
    async::BlockingRegion region;
    status_.Update(impl_.WithdrawAs(LeftEvent(impl_.self_.incarnation)));
  }
  // From here on peers refuse what this worker asks.
  impl_.monitor_->Stop();
  Await(
      NotifyPeers(), [] { return "peers have not answered"; },
      &GracefulLeave::AwaitInboundCalls);
}

// Events reach them too, but only with their next look at the store. Until they
// have answered, what they sent before may be on its way; this worker still
// refuses it.
async::Future<void> Agent::Impl::GracefulLeave::NotifyPeers() {
  const async::MonotonicTime limit = std::min(
      deadline_, async::AddDelay(impl_.clock_->Now(),
                                 impl_.options_.liveness.silent_limit));
  std::vector<async::Future<void>> answers;
  for (const auto& peer : impl_.peers_.All()) {
    if (peer->info().incarnation == impl_.self_.incarnation || peer->lost() ||
        !peer->watched()) {
      continue;
    }
    async::Promise<void> answered;
    answers.push_back(answered.future());
    impl_.SendLeave(
        peer, limit,
        [answered = std::move(answered)](absl::Status status) mutable {
          answered.Set(std::move(status));
        });
  }
  return async::JoinAll(std::move(answers));
}

// A peer that did not answer learns of it by the event.
void Agent::Impl::GracefulLeave::AwaitInboundCalls(const absl::Status&) {
  for (size_t i = impl_.services_.size(); i > 0; --i) {
    impl_.services_[i - 1]->OnLeft();
  }
  Await(
      shared_->inbound_calls.WhenIdle(),
      [this] {
        return absl::StrCat(impl_.num_server_calls(),
                            " inbound calls have not ended");
      },
      &GracefulLeave::End);
}

void Agent::Impl::GracefulLeave::End(const absl::Status& status) {
  status_.Update(status);
  Finish(status_);
}

absl::Status Agent::Impl::GracefulLeave::Interruption() const {
  for (const auto& peer : impl_.peers_.All()) {
    if (!peer->lost() || peer->left()) continue;
    RETURN_IF_ERROR(WithErrorDetail(peer->connection().status(), peer->info(),
                                    /*maybe_applied=*/false));
  }
  return absl::OkStatus();
}

void Agent::Impl::GracefulLeave::EnterBarrier(std::string_view barrier,
                                              std::string_view payload,
                                              Step next) {
  barrier_.emplace(impl_.worker_directory_.BarrierOf(barrier));
  payload_ = std::string(payload);
  arrived_ = false;
  after_barrier_ = next;
  next_lease_check_ = async::AddDelay(impl_.clock_->Now(), kLeaseInterval);
  PollBarrier(absl::OkStatus());
}

// Whether all have arrived; kUnavailable or kDeadlineExceeded without a detail
// if the store does not answer.
absl::StatusOr<bool> Agent::Impl::GracefulLeave::CheckBarrier(bool late) {
  async::BlockingRegion region;
  if (!arrived_) {
    RETURN_IF_ERROR(barrier_->Arrive(
        WorkerDirectory::ParticipantOf(impl_.self_), payload_));
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
  RETURN_IF_ERROR(Interruption());
  if (late || !absl::IsDeadlineExceeded(status)) return status;
  if (impl_.clock_->Now() >= next_lease_check_) RETURN_IF_ERROR(CheckLeases());
  return false;
}

// Once workers go, heartbeats say nothing of those that are still to come.
absl::Status Agent::Impl::GracefulLeave::CheckLeases() {
  const async::MonotonicTime now = impl_.clock_->Now();
  next_lease_check_ = async::AddDelay(now, kLeaseInterval);
  ASSIGN_OR_RETURN(const std::vector<size_t> missing,
                   barrier_->Missing(participants_));
  for (const size_t i : missing) {
    const WorkerInfo& worker = all_[i];
    ASSIGN_OR_RETURN(const std::string count,
                     impl_.membership_log_.ReadLease(worker.incarnation));
    const absl::Duration limit = impl_.options_.liveness.silent_limit;
    if (leases_.Observe(worker.incarnation, count, now) < limit) continue;
    return WithErrorDetail(
        absl::UnavailableError(
            absl::StrCat(ToString(worker), " did not renew its lease for ",
                         absl::FormatDuration(limit), " while it left")),
        worker, /*maybe_applied=*/false);
  }
  return absl::OkStatus();
}

void Agent::Impl::GracefulLeave::PollBarrier(const absl::Status& status) {
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
  impl_.clock_->CallAfter(
      kBarrierPause,
      [looked = std::move(looked)]() mutable { looked.Set(absl::OkStatus()); });
  Await(
      look, [] { return "the others have not arrived"; },
      &GracefulLeave::PollBarrier);
}

void Agent::Impl::GracefulLeave::EnterQuiescenceBarrier(
    const absl::Status& status) {
  status_.Update(status);
  const uint64_t calls = impl_.num_calls_made_.load(std::memory_order_relaxed);
  const bool quiet = round_ > 0 && calls == calls_seen_;
  calls_seen_ = calls;
  EnterBarrier(absl::StrCat("quiescence", round_),
               quiet || !status_.ok() ? "yes" : "no",
               &GracefulLeave::OnQuiescenceBarrier);
}

void Agent::Impl::GracefulLeave::OnQuiescenceBarrier(
    const absl::Status& status) {
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

void Agent::Impl::GracefulLeave::LeaveStaticGroup() {
  {
    async::BlockingRegion region;
    // From here on peers may go at any time.
    impl_.monitor_->Stop();
    impl_.membership_->Stop();
    status_.Update(impl_.WithdrawAs(LeftEvent(impl_.self_.incarnation)));
  }
  last_barrier_ = true;
  EnterBarrier("left", "", &GracefulLeave::End);
}

}  // namespace hawser::rpc
