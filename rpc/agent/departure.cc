#include "rpc/agent/departure.h"

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
constexpr absl::Duration kMeetingSlice = absl::Milliseconds(100);
constexpr absl::Duration kMeetingPause = absl::Milliseconds(5);
// How often it looks at the leases of those that have not come.
constexpr absl::Duration kLeaseInterval = absl::Milliseconds(500);
// Leases are watched anew after a look that came later than this.
constexpr absl::Duration kMaxLeaseGap = absl::Seconds(2);

}  // namespace

Agent::Impl::Departure::Departure(Impl* impl)
    : impl_(*impl), shared_(impl->shared_), leases_(kMaxLeaseGap) {}

void Agent::Impl::Departure::Begin() {
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
  AwaitOwnCalls(&Departure::OnOwnCallsEnded);
}

void Agent::Impl::Departure::Abandon() {
  Finish(absl::CancelledError(absl::StrCat(
      ToString(impl_.self_), " was shut down before it had left the job")));
}

void Agent::Impl::Departure::Finish(absl::Status status) {
  {
    async::MutexLock lock(&mutex_);
    if (std::exchange(ended_, true)) return;
    next_ = nullptr;
    if (timer_.has_value()) impl_.clock_->Cancel(*timer_);
  }
  promise_.Set(std::move(status));
}

bool Agent::Impl::Departure::ended() {
  async::MutexLock lock(&mutex_);
  return ended_;
}

void Agent::Impl::Departure::Await(const async::Future<void>& done, Late late,
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
  if (impl_.clock_->Now() >= deadline_) OnDeadline();
}

void Agent::Impl::Departure::OnDeadline() {
  Gate::Pass pass(&shared_->gate);
  if (!pass) return;
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

void Agent::Impl::Departure::Resume(uint64_t wait, absl::Status status) {
  Gate::Pass pass(&shared_->gate);
  if (!pass) return;
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

void Agent::Impl::Departure::AwaitOwnCalls(Step next) {
  Await(
      impl_.client_calls_.Idle(),
      [this] {
        return absl::StrCat(impl_.num_client_calls(),
                            " own calls have not ended");
      },
      next);
}

void Agent::Impl::Departure::OnOwnCallsEnded(const absl::Status& status) {
  if (!status.ok()) {
    Finish(status);
    return;
  }
  if (impl_.options_.world_size.has_value()) {
    // So that a wait for one that died ends.
    for (const auto& peer : impl_.peers_.All()) impl_.Watch(peer);
    all_ = impl_.workers();
    Meet("leaving", "", &Departure::OnAllLeave);
    return;
  }
  OnAllLeave(absl::OkStatus());
}

void Agent::Impl::Departure::OnAllLeave(const absl::Status& status) {
  if (!status.ok()) {
    Finish(status);
    return;
  }
  num_undrained_ = impl_.services_.size();
  DrainNext(absl::OkStatus());
}

void Agent::Impl::Departure::DrainNext(const absl::Status& status) {
  status_.Update(status);
  if (num_undrained_ == 0) {
    calls_seen_ = impl_.num_calls_made_.load(std::memory_order_relaxed);
    AwaitOwnCalls(impl_.options_.world_size.has_value() ? &Departure::MeetQuiet
                                                        : &Departure::GoAway);
    return;
  }
  Service& service = *impl_.services_[--num_undrained_];
  Await(
      service.Drain(deadline_),
      [name = std::string(service.name())] {
        return absl::StrCat("service ", name, " has not drained");
      },
      &Departure::DrainNext);
}

void Agent::Impl::Departure::GoAway(const absl::Status& status) {
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
      SayFarewell(), [] { return "peers have not answered"; },
      &Departure::AwaitServedCalls);
}

// Events reach them too, but only with their next look at the store. Until they
// have answered, what they sent before may be on its way; this worker still
// refuses it.
async::Future<void> Agent::Impl::Departure::SayFarewell() {
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

// Who did not answer hears of it by the event.
void Agent::Impl::Departure::AwaitServedCalls(const absl::Status&) {
  for (size_t i = impl_.services_.size(); i > 0; --i) {
    impl_.services_[i - 1]->OnLeft();
  }
  Await(
      shared_->served_calls.Idle(),
      [this] {
        return absl::StrCat(impl_.num_server_calls(),
                            " served calls have not ended");
      },
      &Departure::End);
}

void Agent::Impl::Departure::End(const absl::Status& status) {
  status_.Update(status);
  Finish(status_);
}

absl::Status Agent::Impl::Departure::Interruption() const {
  for (const auto& peer : impl_.peers_.All()) {
    if (!peer->lost() || peer->left()) continue;
    RETURN_IF_ERROR(WithErrorDetail(peer->connection().status(), peer->info(),
                                    /*maybe_applied=*/false));
  }
  return absl::OkStatus();
}

void Agent::Impl::Departure::Meet(std::string_view stage, std::string_view word,
                                  Step next) {
  stage_ = std::string(stage);
  word_ = std::string(word);
  arrived_ = false;
  after_meeting_ = next;
  next_lease_look_ = async::AddDelay(impl_.clock_->Now(), kLeaseInterval);
  LookAround(absl::OkStatus());
}

// Whether all have come; kUnavailable or kDeadlineExceeded without a detail if
// the store does not answer.
absl::StatusOr<bool> Agent::Impl::Departure::AskStage(bool late) {
  async::BlockingRegion region;
  Rendezvous& rendezvous = impl_.rendezvous_;
  if (!arrived_) {
    RETURN_IF_ERROR(rendezvous.Arrive(stage_, impl_.self_, word_));
    arrived_ = true;
  }
  const absl::Status status = rendezvous.AwaitStage(
      stage_, all_, late ? absl::ZeroDuration() : kMeetingSlice);
  if (status.ok()) {
    if (!word_.empty()) {
      ASSIGN_OR_RETURN(words_, rendezvous.WordsAtStage(stage_, all_));
    }
    return true;
  }
  // Who has come must not fail because another ended at once.
  RETURN_IF_ERROR(Interruption());
  if (late || !absl::IsDeadlineExceeded(status)) return status;
  if (impl_.clock_->Now() >= next_lease_look_) RETURN_IF_ERROR(LookAtLeases());
  return false;
}

// Once workers go, heartbeats say nothing of those that are still to come.
absl::Status Agent::Impl::Departure::LookAtLeases() {
  const async::MonotonicTime now = impl_.clock_->Now();
  next_lease_look_ = async::AddDelay(now, kLeaseInterval);
  ASSIGN_OR_RETURN(const std::vector<WorkerInfo> missing,
                   impl_.rendezvous_.MissingAtStage(stage_, all_));
  for (const WorkerInfo& worker : missing) {
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

void Agent::Impl::Departure::LookAround(const absl::Status& status) {
  const bool late = !status.ok();
  absl::StatusOr<bool> all = AskStage(late);
  const bool answered = all.ok() || GetErrorDetail(all.status()).has_value() ||
                        !(absl::IsUnavailable(all.status()) ||
                          absl::IsDeadlineExceeded(all.status()));
  // Whose process has the store may have seen all come, and gone.
  const bool store_went = !answered && last_meeting_ && arrived_;
  if (store_went) all = true;
  if (late || store_went || (answered && all.value_or(true))) {
    (this->*after_meeting_)(all.status());
    return;
  }
  async::Promise<void> looked;
  async::Future<void> look = looked.future();
  impl_.clock_->CallAfter(
      kMeetingPause,
      [looked = std::move(looked)]() mutable { looked.Set(absl::OkStatus()); });
  Await(
      look, [] { return "the others have not come"; }, &Departure::LookAround);
}

void Agent::Impl::Departure::MeetQuiet(const absl::Status& status) {
  status_.Update(status);
  const uint64_t calls = impl_.num_calls_made_.load(std::memory_order_relaxed);
  const bool quiet = round_ > 0 && calls == calls_seen_;
  calls_seen_ = calls;
  Meet(absl::StrCat("quiet", round_), quiet || !status_.ok() ? "yes" : "no",
       &Departure::OnQuietMet);
}

void Agent::Impl::Departure::OnQuietMet(const absl::Status& status) {
  if (!status.ok()) {
    End(status);
  } else if (std::find(words_.begin(), words_.end(), "no") != words_.end()) {
    ++round_;
    AwaitOwnCalls(&Departure::MeetQuiet);
  } else {
    GoTogether();
  }
}

void Agent::Impl::Departure::GoTogether() {
  {
    async::BlockingRegion region;
    // From here on peers may go at any time.
    impl_.monitor_->Stop();
    impl_.membership_->Stop();
    status_.Update(impl_.WithdrawAs(LeftEvent(impl_.self_.incarnation)));
  }
  last_meeting_ = true;
  Meet("left", "", &Departure::End);
}

}  // namespace hawser::rpc
