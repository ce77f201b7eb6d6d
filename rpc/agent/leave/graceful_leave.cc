#include "rpc/agent/leave/graceful_leave.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "async/blocking_region.h"
#include "async/first_of.h"
#include "async/task_local.h"
#include "rpc/membership/worker_directory.h"

namespace hawser::rpc {
namespace {

// Payload of a worker that has made calls since the last round, and result of
// such a round.
constexpr char kBusy[] = "busy";

// Whether a call got no reply from the store.
bool IsStoreAway(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

}  // namespace

GracefulLeave::GracefulLeave(Options options)
    : options_(std::move(options)),
      state_(*options_.state),
      member_(*options_.member) {}

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
  absl::AnyInvocable<void()> cancel_watch;
  {
    async::MutexLock lock(&mutex_);
    if (std::exchange(ended_, true)) return;
    next_ = nullptr;
    if (timer_.has_value()) state_.clock().Cancel(*timer_);
    cancel_watch.swap(cancel_watch_);
  }
  if (cancel_watch != nullptr) cancel_watch();
  promise_.Set(std::move(status));
}

template <class T>
void GracefulLeave::CancelAtEnd(const async::Future<T>& watch) {
  {
    async::MutexLock lock(&mutex_);
    if (!ended_) {
      cancel_watch_ = [watch] { watch.Cancel(); };
      return;
    }
  }
  watch.Cancel();
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
    all_ = member_.Members();
    peer_lost_ = member_.WhenPeerLost();
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

bool GracefulLeave::coordinates() const {
  return all_.front().incarnation == state_.self().incarnation;
}

void GracefulLeave::EnterBarrier(std::string_view barrier,
                                 std::string_view payload, Step next) {
  barrier_.emplace(member_.BarrierOf(barrier, all_.front().incarnation));
  payload_ = std::string(payload);
  after_barrier_ = next;
  Arrive(absl::OkStatus());
}

void GracefulLeave::Arrive(const absl::Status& status) {
  if (!status.ok()) {
    PassBarrier(store_error_);
    return;
  }
  absl::Status arrived;
  {
    async::BlockingRegion region;
    arrived = barrier_->Arrive(WorkerDirectory::ParticipantOf(state_.self()),
                               payload_);
  }
  if (IsStoreAway(arrived)) {
    TryAgain(arrived, &GracefulLeave::Arrive);
  } else if (!arrived.ok()) {
    PassBarrier(arrived);
  } else if (coordinates()) {
    AwaitArrivals();
  } else {
    AwaitCompletion();
  }
}

void GracefulLeave::AwaitArrivals() {
  arrivals_ = barrier_->WhenAllArrived(participants_);
  CancelAtEnd(arrivals_);
  Await(
      async::FirstOf(
          {arrivals_.Then([](const auto& all) { return all.status(); }),
           peer_lost_}),
      [] { return "the others have not arrived"; }, &GracefulLeave::OnArrivals);
}

// A worker that has arrived must not fail because another ended at once.
void GracefulLeave::OnArrivals(const absl::Status& status) {
  if (!arrivals_.ready() || !arrivals_.result().ok()) {
    PassBarrier(Explain(status));
    return;
  }
  const std::vector<std::string>& payloads = *arrivals_.result();
  all_quiet_ =
      std::find(payloads.begin(), payloads.end(), kBusy) == payloads.end();
  CompleteBarrier(absl::OkStatus());
}

void GracefulLeave::CompleteBarrier(const absl::Status& status) {
  if (!status.ok()) {
    PassBarrier(store_error_);
    return;
  }
  absl::Status completed;
  {
    async::BlockingRegion region;
    completed = barrier_->Complete(all_quiet_ ? "" : kBusy);
  }
  if (IsStoreAway(completed)) {
    TryAgain(completed, &GracefulLeave::CompleteBarrier);
  } else {
    PassBarrier(completed);
  }
}

void GracefulLeave::AwaitCompletion() {
  if (!completion_.valid()) {
    completion_ = barrier_->WhenComplete();
    CancelAtEnd(completion_);
  }
  std::vector<async::Future<void>> ends = {
      completion_.Then([](const auto& result) { return result.status(); }),
      peer_lost_};
  if (last_barrier_) ends.push_back(Pause());
  Await(
      async::FirstOf(ends), [] { return "the others have not arrived"; },
      &GracefulLeave::OnCompletion);
}

void GracefulLeave::OnCompletion(const absl::Status& status) {
  if (completion_.ready() && completion_.result().ok()) {
    all_quiet_ = *completion_.result() != kBusy;
    PassBarrier(absl::OkStatus());
  } else if (!status.ok()) {
    PassBarrier(Explain(status));
  } else if (!member_.StoreReachable()) {
    // The process that hosts the store saw the last barrier complete, and ended
    // first.
    PassBarrier(absl::OkStatus());
  } else {
    AwaitCompletion();
  }
}

absl::Status GracefulLeave::Explain(const absl::Status& status) {
  if (!absl::IsDeadlineExceeded(status)) return status;
  async::BlockingRegion region;
  absl::Status missing = barrier_->CheckAllArrived(participants_);
  return missing.ok() ? status : missing;
}

void GracefulLeave::PassBarrier(const absl::Status& status) {
  if (arrivals_.valid()) std::exchange(arrivals_, {}).Cancel();
  if (completion_.valid()) std::exchange(completion_, {}).Cancel();
  (this->*after_barrier_)(status);
}

void GracefulLeave::TryAgain(const absl::Status& error, Step step) {
  store_error_ = error;
  Await(
      Pause(), [] { return "the store does not reply"; }, step);
}

async::Future<void> GracefulLeave::Pause() {
  async::Promise<void> passed;
  async::Future<void> pause = passed.future();
  state_.clock().CallAfter(
      options_.heartbeat_interval,
      [passed = std::move(passed)]() mutable { passed.Set(absl::OkStatus()); });
  return pause;
}

void GracefulLeave::EnterQuiescenceBarrier(const absl::Status& status) {
  status_.Update(status);
  const uint64_t calls = state_.num_calls_made();
  const bool quiet = round_ > 0 && calls == calls_seen_;
  calls_seen_ = calls;
  EnterBarrier(absl::StrCat("quiescence", round_),
               quiet || !status_.ok() ? "" : kBusy,
               &GracefulLeave::OnQuiescenceBarrier);
}

void GracefulLeave::OnQuiescenceBarrier(const absl::Status& status) {
  if (!status.ok()) {
    End(status);
  } else if (!all_quiet_) {
    ++round_;
    AwaitOwnCalls(&GracefulLeave::EnterQuiescenceBarrier);
  } else {
    LeaveStaticGroup();
  }
}

void GracefulLeave::LeaveStaticGroup() {
  member_.StopMonitoring();
  member_.StopReporting();
  last_barrier_ = true;
  EnterBarrier("left", "", &GracefulLeave::OnLastBarrier);
}

void GracefulLeave::OnLastBarrier(const absl::Status& status) {
  status_.Update(status);
  if (!status.ok() || !coordinates()) {
    Withdraw(absl::OkStatus());
    return;
  }
  Await(
      member_.WhenAlone(), [] { return "the others have not left"; },
      &GracefulLeave::Withdraw);
}

void GracefulLeave::Withdraw(const absl::Status&) {
  absl::Status withdrawn;
  {
    async::BlockingRegion region;
    member_.StopMembership();
    withdrawn = member_.Withdraw();
  }
  // The process that hosts the store may have ended after the last barrier.
  if (!status_.ok() || !IsStoreAway(withdrawn)) status_.Update(withdrawn);
  Finish(status_);
}

}  // namespace hawser::rpc
