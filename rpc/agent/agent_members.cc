#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "async/exceptions.h"
#include "async/status_macros.h"
#include "rpc/agent/agent_impl.h"
#include "rpc/errors/error_detail.h"

namespace hawser::rpc {

absl::Status Agent::Impl::RegisterWorker() {
  // Before the claim: a name without a lease is free.
  RETURN_IF_ERROR(membership_log_.Renew(self_.incarnation, 0));
  const LivenessOptions& liveness = options_.liveness;
  const absl::StatusOr<std::vector<WorkerInfo>> replaced =
      worker_directory_.Register(
          self_, {.silent_limit = liveness.silent_limit,
                  .unreachable_limit = liveness.unreachable_limit,
                  .interval = liveness.heartbeat_interval / 5,
                  .patience = std::min(options_.start_timeout,
                                       2 * liveness.silent_limit),
                  .probe = [this](const WorkerInfo& holder) {
                    return Probe(holder);
                  }});
  if (!replaced.ok()) {
    // The claim's error is what counts.
    (void)membership_log_.DropLease(self_.incarnation);
    return replaced.status();
  }
  for (const WorkerInfo& old : *replaced) {
    RETURN_IF_ERROR(membership_log_.Append(
        LostEvent(old.incarnation, self_.incarnation,
                  absl::StrCat("was replaced by ", ToString(self_)))));
  }
  return membership_log_.Append(JoinedEvent(self_));
}

absl::Status Agent::Impl::Probe(const WorkerInfo& holder) {
  const LivenessOptions& liveness = options_.liveness;
  auto peer = MakePeer(holder);
  async::Promise<void> answered;
  async::Future<void> answer = answered.future();
  Ping(peer, async::AddDelay(clock_->Now(), liveness.heartbeat_interval),
       [answered = std::move(answered)](absl::Status status) mutable {
         answered.Set(std::move(status));
       });
  return answer.Wait();
}

void Agent::Impl::MakeMembership() {
  membership_ = std::make_unique<Membership>(
      Membership::Options{.self = self_,
                          .liveness = options_.liveness,
                          .clock = clock_,
                          .executor = control_executor_,
                          .log = &membership_log_},
      [this](const MemberEvent& event) { OnMemberEvent(event); });
}

void Agent::Impl::OnMemberEvent(const MemberEvent& event) {
  const WorkerInfo& worker = event.worker;
  if (event.kind == MemberEvent::Kind::kJoined) {
    if (!IsLost(worker)) peers_.Announce(MakePeer(worker));
  } else if (worker.incarnation == self_.incarnation) {
    if (event.kind == MemberEvent::Kind::kLost) OnDeclaredLost(event.reason);
  } else {
    {
      async::MutexLock lock(&mutex_);
      ended_.insert(worker.incarnation);
    }
    std::shared_ptr<Peer> peer = peers_.FindByIncarnation(worker.incarnation);
    if (peer == nullptr) peer = MakePeer(worker);
    if (event.kind == MemberEvent::Kind::kLeft) {
      OnPeerLeft(peer);
    } else {
      OnPeerLost(peer, absl::UnavailableError(
                           absl::StrCat(ToString(worker), " ", event.reason)));
    }
  }
  watches_->OnEvent(event);
}

void Agent::Impl::NotifyServices(const std::shared_ptr<Peer>& peer,
                                 const absl::Status& status) {
  duplicates_.Forget(peer->info().incarnation);
  // What a service did with that worker before may have run there.
  Post(*executor_, [this, peer,
                    detailed = WithErrorDetail(status, peer->info(),
                                               /*maybe_applied=*/true)] {
    for (Service* service : services_) {
      async::LogExceptions(
          "a service", [&] { service->OnWorkerLost(peer->info(), detailed); });
    }
  });
}

bool Agent::Impl::WasMet(const WorkerInfo& worker) const {
  if (peers_.FindByIncarnation(worker.incarnation) != nullptr) return true;
  async::MutexLock lock(&mutex_);
  return non_members_.contains(worker.incarnation);
}

void Agent::Impl::OnPeerLeft(const std::shared_ptr<Peer>& peer) {
  {
    async::MutexLock lock(&mutex_);
    if (!lost_.insert(peer->info().incarnation).second) return;
  }
  const absl::Status status = absl::UnavailableError(
      absl::StrCat(ToString(peer->info()), " left the job"));
  const bool met = WasMet(peer->info());
  peer->MarkLeft(status);
  // Added since `peer` was looked for.
  const auto added = peers_.FindByIncarnation(peer->info().incarnation);
  if (added != nullptr && added != peer) added->MarkLeft(status);
  if (met) NotifyServices(peer, status);
}

async::Future<RawMessage> Agent::Impl::OnPeerLeaves(const WorkerInfo& worker) {
  std::shared_ptr<Peer> peer = peers_.FindByIncarnation(worker.incarnation);
  // Who is not known here was never called.
  if (peer == nullptr) {
    return async::MakeReadyFuture<RawMessage>(RawMessage());
  }
  OnPeerLeft(peer);
  return peer->WhenIdle().Then(
      [](const absl::Status&) -> absl::StatusOr<RawMessage> {
        return RawMessage();
      });
}

void Agent::Impl::OnPeerLost(const std::shared_ptr<Peer>& peer,
                             const absl::Status& status) {
  bool is_new = false;
  {
    async::MutexLock lock(&mutex_);
    is_new = lost_.insert(peer->info().incarnation).second;
  }
  if (!is_new) {
    // It left before, and has ended now.
    if (peer->left()) peer->Disconnect();
    return;
  }
  const bool met = WasMet(peer->info());
  peer->MarkLost(status);
  // As above.
  const auto added = peers_.FindByIncarnation(peer->info().incarnation);
  if (added != nullptr && added != peer) added->MarkLost(status);
  if (met) NotifyServices(peer, status);
}

// A worker that refuses a message for it says that one of the two was declared
// lost, and may have read that first. The log tells which; only where it cannot
// be read the peer counts as lost for this worker.
void Agent::Impl::CheckAlive(const std::shared_ptr<Peer>& peer,
                             async::MonotonicTime deadline,
                             absl::AnyInvocable<void(absl::Status) &&> done) {
  Ping(peer, deadline,
       [this, peer, done = std::move(done)](absl::Status status) mutable {
         const std::optional<ErrorDetail> detail = GetErrorDetail(status);
         if (!absl::IsFailedPrecondition(status) || !detail.has_value() ||
             detail->incarnation != peer->info().incarnation) {
           std::move(done)(std::move(status));
           return;
         }
         membership_->CatchUp(
             [done = std::move(done), status = std::move(status)]() mutable {
               std::move(done)(std::move(status));
             });
       });
}

void Agent::Impl::OnPeerSilent(const std::shared_ptr<Peer>& peer,
                               const absl::Status& status) {
  OnPeerLost(peer, status);
  if (peer->left()) return;
  // For the others, and so that of two that lost each other one stays.
  membership_->ReportSuspect(
      peer->info(), absl::StrCat("was found lost by ", ToString(self_), ": ",
                                 status.message()));
}

void Agent::Impl::OnDeclaredLost(const std::string& reason) {
  fenced_.store(true, std::memory_order_release);
  options_.transport->SetServing(false);
  const absl::Status status = absl::FailedPreconditionError(absl::StrCat(
      ToString(self_), " was declared lost and must restart: it ", reason));
  for (const auto& peer : peers_.All()) {
    if (peer->info().incarnation != self_.incarnation) OnPeerLost(peer, status);
  }
}

absl::Status Agent::Impl::WithdrawAs(const v1::MembershipEvent& departure) {
  // A store that does not answer is not asked for more.
  RETURN_IF_ERROR(membership_log_.ReadLease(self_.incarnation).status());
  absl::Status status = worker_directory_.Withdraw(self_);
  status.Update(membership_log_.Append(departure));
  status.Update(membership_log_.DropLease(self_.incarnation));
  return status;
}

MemberWatch Agent::Impl::WatchMembers(MemberCallback callback) {
  return watches_->Add(std::move(callback));
}

void Agent::Impl::UnwatchMembers(MemberWatch watch) { watches_->Remove(watch); }

}  // namespace hawser::rpc
