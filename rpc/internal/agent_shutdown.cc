#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "async/blocking_region.h"
#include "async/status_macros.h"
#include "rpc/internal/agent_impl.h"

namespace hawser::rpc {
namespace {

async::MonotonicTime RealDeadline(absl::Duration timeout) {
  return async::AddDelay(std::chrono::steady_clock::now(), timeout);
}

}  // namespace

absl::Status Agent::Impl::FirstLost() const {
  for (const auto& peer : peers_.All()) {
    if (!peer->lost() || peer->left()) continue;
    absl::StatusOr<std::shared_ptr<Connection>> connection = peer->connection();
    if (!connection.ok()) return connection.status();
  }
  return absl::OkStatus();
}

absl::Status Agent::Impl::AwaitOwnCalls(async::MonotonicTime deadline) {
  async::BlockingRegion region;
  async::MutexLock lock(&mutex_);
  while (num_client_calls_.load(std::memory_order_acquire) > 0) {
    if (!changed_.WaitUntil(&mutex_, deadline)) {
      return absl::DeadlineExceededError(
          absl::StrCat("graceful shutdown of ", ToString(self_), ": ",
                       num_client_calls_.load(), " own calls have not ended"));
    }
  }
  return absl::OkStatus();
}

absl::Status Agent::Impl::AwaitServedCalls(async::MonotonicTime deadline) {
  constexpr absl::Duration kLook = absl::Milliseconds(5);
  async::BlockingRegion region;
  async::MutexLock lock(&mutex_);
  while (num_server_calls() > 0) {
    if (deadline <= std::chrono::steady_clock::now()) {
      return absl::DeadlineExceededError(
          absl::StrCat("graceful shutdown of ", ToString(self_), ": ",
                       num_server_calls(), " served calls have not ended"));
    }
    (void)changed_.WaitUntil(&mutex_, std::min(deadline, RealDeadline(kLook)));
  }
  return absl::OkStatus();
}

absl::Status Agent::Impl::DrainServices(async::MonotonicTime deadline) {
  absl::Status status;
  for (auto it = services_.rbegin(); it != services_.rend(); ++it) {
    status.Update((*it)->Drain(deadline).WaitUntil(
        deadline, absl::StrCat("service ",
                               absl::string_view((*it)->name().data(),
                                                 (*it)->name().size()),
                               " to drain")));
  }
  return status;
}

// Events reach them too, but only with their next look at the store. Until they
// have answered, what they sent before may be on its way; this worker still
// refuses it.
void Agent::Impl::TellPeersToGoElsewhere(async::MonotonicTime deadline) {
  // In a simulation nothing moves while one waits.
  if (own_pool_ == nullptr || own_clock_ == nullptr) return;
  const async::MonotonicTime limit =
      std::min(deadline, RealDeadline(options_.liveness.silent_limit));
  std::vector<async::Future<void>> answers;
  for (const auto& peer : peers_.All()) {
    if (peer->info().incarnation == self_.incarnation || peer->lost() ||
        !peer->watched()) {
      continue;
    }
    async::Promise<void> answered;
    answers.push_back(answered.future());
    SendLeave(peer, limit,
              [answered = std::move(answered)](absl::Status status) mutable {
                answered.Set(std::move(status));
              });
  }
  // Who does not answer hears of it by the event.
  for (auto& answer : answers) (void)answer.Wait();
}

// Without a world size: own calls end, the services drain, the others are told
// that this worker left, and what it serves ends.
//
// With a world size:
//
// 1. Own calls end; all workers meet.
// 2. The services drain, while all workers still serve.
// 3. Rounds: own calls end; all meet and say whether they made a call since
//    the last round; until nobody did.
// 4. The worker's record goes; all meet once more, so that nobody stops while
//    another still needs it.
absl::Status Agent::Impl::LeaveJob() {
  const async::MonotonicTime deadline = RealDeadline(options_.shutdown_timeout);
  RETURN_IF_ERROR(AwaitOwnCalls(deadline));
  if (!options_.world_size.has_value()) {
    absl::Status drained = DrainServices(deadline);
    drained.Update(AwaitOwnCalls(deadline));
    phase_.store(Phase::kLeaving, std::memory_order_release);
    drained.Update(WithdrawAs(LeftEvent(self_.incarnation)));
    // From here on peers refuse what this worker asks.
    monitor_->Stop();
    TellPeersToGoElsewhere(deadline);
    drained.Update(AwaitServedCalls(deadline));
    return drained;
  }
  // So that a wait for one that died ends.
  for (const auto& peer : peers_.All()) Watch(peer);
  const std::vector<WorkerInfo> all = workers();
  const auto interrupt = [this] { return FirstLost(); };
  RETURN_IF_ERROR(
      rendezvous_.Meet("leaving", self_, "", all, deadline, interrupt)
          .status());
  absl::Status status = DrainServices(deadline);
  uint64_t calls_seen = num_calls_made_.load(std::memory_order_relaxed);
  for (int round = 0;; ++round) {
    status.Update(AwaitOwnCalls(deadline));
    const uint64_t calls = num_calls_made_.load(std::memory_order_relaxed);
    const bool quiet = round > 0 && calls == calls_seen;
    calls_seen = calls;
    absl::StatusOr<std::vector<std::string>> words = rendezvous_.Meet(
        absl::StrCat("quiet", round), self_,
        quiet || !status.ok() ? "yes" : "no", all, deadline, interrupt);
    if (!words.ok()) {
      status.Update(words.status());
      return status;
    }
    if (std::find(words->begin(), words->end(), "no") == words->end()) break;
  }
  // From here on peers may go at any time.
  monitor_->Stop();
  membership_->Stop();
  status.Update(WithdrawAs(LeftEvent(self_.incarnation)));
  status.Update(
      rendezvous_.Meet("left", self_, "", all, deadline, interrupt).status());
  return status;
}

// 1. No calls begin; the transport ends those under way, in both directions.
// 2. What was posted runs to its end, and finds calls refused and its waiting
//    for services ended.
// 3. Nothing is left that could use the services: they stop.
void Agent::Impl::Stop() {
  phase_.store(Phase::kStopping, std::memory_order_release);
  if (monitor_ != nullptr) monitor_->Stop();
  if (membership_ != nullptr) membership_->Stop();
  watches_->Stop();
  call_gate_.Close();
  if (options_.transport != nullptr) options_.transport->Shutdown();
  AbandonAttempts();
  for (size_t i = num_started_services_; i > 0; --i) {
    services_[i - 1]->Interrupt();
  }
  if (own_pool_ != nullptr) own_pool_->Shutdown();
  shared_->gate.Close();
  AbandonAttempts();
  for (size_t i = num_started_services_; i > 0; --i) services_[i - 1]->Stop();
  for (const auto& peer : peers_.All()) peer->Disconnect();
  phase_.store(Phase::kStopped, std::memory_order_release);
}

absl::Status Agent::Impl::Shutdown(bool graceful) {
  if (InsideScope::IsInside(this)) {
    return absl::FailedPreconditionError(
        "an agent cannot be shut down within one of its calls");
  }
  {
    async::BlockingRegion region;
    async::MutexLock lock(&mutex_);
    if (std::exchange(shutdown_begun_, true)) {
      while (!shutdown_result_.has_value()) changed_.Wait(&mutex_);
      return *shutdown_result_;
    }
  }
  const bool joined = joined_.load(std::memory_order_acquire);
  if (joined) options_.transport->SetServing(false);
  absl::Status status;
  if (graceful && joined) status = LeaveJob();
  if (joined && (!graceful || !status.ok())) {
    // What it says below is not news to itself.
    membership_->Stop();
    // So that the name is free again. What went wrong before is what counts.
    (void)WithdrawAs(LostEvent(self_.incarnation, self_.incarnation,
                               "stopped without leaving the job"));
  }
  Stop();
  async::MutexLock lock(&mutex_);
  shutdown_result_ = status;
  changed_.NotifyAll();
  return status;
}

}  // namespace hawser::rpc
