#include "rpc/agent/members/peer_membership.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "async/blocking_region.h"
#include "async/join.h"
#include "async/status_macros.h"
#include "rpc/errors/error_detail.h"
#include "rpc/membership/group_start.h"
#include "store/store.h"
#include "telemetry/log.h"

namespace hawser::rpc {

PeerMembership::PeerMembership(Options options)
    : options_(std::move(options)),
      state_(*options_.state),
      records_(options_.store, state_.job()),
      log_(options_.store, state_.job()),
      peers_(options_.state, &records_, options_.transport),
      watches_(&state_.executor()) {}

PeerMembership::~PeerMembership() = default;

absl::Status PeerMembership::JoinGroup() {
  RETURN_IF_ERROR(records_.JoinGroup(options_.world_size));
  monitor_ = std::make_unique<LivenessMonitor>(
      options_.liveness, &state_.clock(),
      [this](const std::shared_ptr<Peer>& peer, async::MonotonicTime deadline,
             ControlCalls::Done done) {
        CheckAlive(peer, deadline, std::move(done));
      },
      [this](const std::shared_ptr<Peer>& peer, absl::Duration timeout,
             ControlCalls::Done done) {
        options_.transport->Probe(peer->info().address, timeout,
                                  std::move(done));
      },
      [this](const std::shared_ptr<Peer>& peer, const absl::Status& status) {
        OnSilent(peer, status);
      });
  membership_ = std::make_unique<Membership>(
      Membership::Options{.self = state_.self(),
                          .liveness = options_.liveness,
                          .clock = &state_.clock(),
                          .executor = &state_.control_executor(),
                          .log = &log_},
      [this](const MemberEvent& event) { OnEvent(event); });
  return absl::OkStatus();
}

absl::Status PeerMembership::UntilStoreReplies(
    async::MonotonicTime deadline, absl::FunctionRef<absl::Status()> step) {
  const absl::Duration pause = options_.liveness.heartbeat_interval;
  while (true) {
    absl::Status status = step();
    const bool replied =
        !absl::IsUnavailable(status) && !absl::IsDeadlineExceeded(status);
    if (replied || state_.TimeUntil(deadline) <= pause) return status;
    // A store to which no connection is possible fails at once.
    const async::BlockingRegion region;
    std::this_thread::sleep_for(absl::ToChronoNanoseconds(pause));
  }
}

absl::Status PeerMembership::Join() {
  const async::MonotonicTime deadline =
      async::AddDelay(state_.clock().Now(), options_.start_timeout);
  RETURN_IF_ERROR(UntilStoreReplies(deadline, [this] { return Register(); }));
  peers_.Add(state_.self());
  joined_.store(true, std::memory_order_release);
  membership_->Start();
  if (!options_.world_size.has_value()) return absl::OkStatus();
  GroupStart start({.self = state_.self(),
                    .world_size = *options_.world_size,
                    .job = std::string(state_.job()),
                    .store = options_.store,
                    .records = &records_,
                    .on_roster =
                        [this](const std::vector<WorkerInfo>& all) {
                          for (const WorkerInfo& worker : all)
                            peers_.Add(worker);
                        },
                    .on_waiting =
                        [this](const std::string& what) {
                          telemetry::Log(
                              telemetry::LogSeverity::kInfo,
                              absl::StrCat(ToString(state_.self()),
                                           " waits for ", what, " at ",
                                           options_.store->description()));
                        }});
  return start.Run(async::AddDelay(std::chrono::steady_clock::now(),
                                   state_.TimeUntil(deadline)));
}

absl::Status PeerMembership::Register() {
  const WorkerInfo& self = state_.self();
  // The lease precedes the claim: a name without a lease is free.
  const LivenessOptions& liveness = options_.liveness;
  RETURN_IF_ERROR(log_.Renew(self.incarnation, 0, liveness.silent_limit));
  const absl::StatusOr<std::vector<WorkerInfo>> replaced = records_.Register(
      self,
      {.silent_limit = liveness.silent_limit,
       .unreachable_limit = liveness.unreachable_limit,
       .interval = liveness.heartbeat_interval,
       .patience = std::min(options_.start_timeout, 2 * liveness.silent_limit),
       .probe = [this](const WorkerInfo& holder) { return Probe(holder); }});
  if (!replaced.ok()) {
    // The error of the claim is the one to report.
    (void)log_.DropLease(self.incarnation);
    return replaced.status();
  }
  for (const WorkerInfo& old : *replaced) {
    RETURN_IF_ERROR(log_.Append(
        LostEvent(old.incarnation, self.incarnation,
                  absl::StrCat("was replaced by ", ToString(self)))));
  }
  // It may have lapsed while this worker waited for the name.
  RETURN_IF_ERROR(log_.Renew(self.incarnation, 1, liveness.silent_limit));
  return log_.Append(JoinedEvent(self));
}

absl::Status PeerMembership::Probe(const WorkerInfo& holder) {
  async::Promise<void> answered;
  async::Future<void> answer = answered.future();
  options_.control->Ping(
      peers_.MakePeer(holder),
      async::AddDelay(state_.clock().Now(),
                      options_.liveness.heartbeat_interval),
      [answered = std::move(answered)](absl::Status status) mutable {
        answered.Set(std::move(status));
      });
  return answer.Wait();
}

absl::StatusOr<std::shared_ptr<Peer>> PeerMembership::FindPeer(
    const Destination& to, async::MonotonicTime deadline) {
  return peers_.Find(to, deadline, membership_->store_reachable());
}

void PeerMembership::Watch(const std::shared_ptr<Peer>& peer) {
  if (peer->SetWatched() &&
      peer->info().incarnation != state_.self().incarnation) {
    monitor_->Watch(peer);
  }
}

std::vector<WorkerInfo> PeerMembership::workers() const {
  std::vector<WorkerInfo> workers;
  for (const auto& peer : peers_.All()) workers.push_back(peer->info());
  return workers;
}

std::shared_ptr<Peer> PeerMembership::FindSender(
    Incarnation incarnation) const {
  return peers_.FindByIncarnation(incarnation);
}

bool PeerMembership::IsLost(const WorkerInfo& worker) const {
  return peers_.IsLost(worker.incarnation);
}

bool PeerMembership::HasDeparted(Incarnation incarnation) const {
  return peers_.HasDeparted(incarnation);
}

bool PeerMembership::MaybeFenced() const {
  return membership_->MaybeFenced(state_.clock().Now());
}

void PeerMembership::OnMessage(const std::shared_ptr<Peer>& sender) {
  sender->SetHeard(state_.clock().Now());
  Watch(sender);
}

void PeerMembership::Confirm(const WorkerInfo& sender,
                             absl::AnyInvocable<void(absl::Status) &&> done) {
  if (!membership_->store_reachable()) {
    std::move(done)(absl::UnavailableError(
        absl::StrCat(ToString(state_.self()), " cannot look up ",
                     ToString(sender), ", as the store does not answer")));
    return;
  }
  peers_.Confirm(sender,
                 [this, done = std::move(done)](
                     absl::StatusOr<std::shared_ptr<Peer>> peer) mutable {
                   if (peer.ok()) Watch(*peer);
                   std::move(done)(peer.status());
                 });
}

async::Future<void> PeerMembership::OnLeaveNotice(const WorkerInfo& worker) {
  const auto peer = peers_.FindByIncarnation(worker.incarnation);
  // A worker that is not known here was never called.
  if (peer == nullptr) return async::MakeReadyFuture<void>(absl::OkStatus());
  OnLeft(peer);
  return peer->WhenIdle();
}

MemberWatch PeerMembership::WatchMembers(MemberCallback callback) {
  return watches_.Add(std::move(callback));
}

void PeerMembership::UnwatchMembers(MemberWatch watch) {
  watches_.Remove(watch);
}

void PeerMembership::OnEvent(const MemberEvent& event) {
  const WorkerInfo& worker = event.worker;
  if (event.kind == MemberEvent::Kind::kJoined) {
    peers_.Announce(worker);
  } else if (worker.incarnation == state_.self().incarnation) {
    if (event.kind == MemberEvent::Kind::kLost) OnFenced(event.reason);
  } else {
    peers_.SetDeparted(worker.incarnation);
    std::shared_ptr<Peer> peer = peers_.FindByIncarnation(worker.incarnation);
    if (peer == nullptr) peer = peers_.MakePeer(worker);
    if (event.kind == MemberEvent::Kind::kLeft) {
      OnLeft(peer);
    } else {
      OnLost(peer, absl::UnavailableError(
                       absl::StrCat(ToString(worker), " ", event.reason)));
    }
  }
  watches_.OnEvent(event);
  if (event.kind != MemberEvent::Kind::kJoined) CheckDeparted();
}

// A worker that rejects a message to it says that one of the two was declared
// lost. This worker may not have read that event yet. The log decides; only if
// it cannot be read, the peer counts as lost.
void PeerMembership::CheckAlive(const std::shared_ptr<Peer>& peer,
                                async::MonotonicTime deadline,
                                ControlCalls::Done done) {
  options_.control->Ping(
      peer, deadline,
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

void PeerMembership::OnSilent(const std::shared_ptr<Peer>& peer,
                              const absl::Status& status) {
  OnLost(peer, status);
  if (peer->left()) return;
  // Tells the other members, and decides which of two workers that lost each
  // other survives.
  membership_->ReportSuspect(
      peer->info(), absl::StrCat("was found lost by ", ToString(state_.self()),
                                 ": ", status.message()));
}

void PeerMembership::OnLost(const std::shared_ptr<Peer>& peer,
                            const absl::Status& status) {
  switch (peers_.MarkLost(peer, status)) {
    case PeerDirectory::Marking::kMarkedBefore:
      // It left before, and has ended now.
      if (peer->left()) peer->Disconnect();
      break;
    case PeerDirectory::Marking::kUnmet:
      break;
    case PeerDirectory::Marking::kMet:
      Report(peer, status);
      break;
  }
  CheckDeparted();
}

void PeerMembership::OnLeft(const std::shared_ptr<Peer>& peer) {
  const absl::Status status = absl::UnavailableError(
      absl::StrCat(ToString(peer->info()), " left the job"));
  if (peers_.MarkLeft(peer, status) == PeerDirectory::Marking::kMet) {
    Report(peer, status);
  }
}

void PeerMembership::OnFenced(const std::string& reason) {
  state_.SetFenced();
  options_.on_fenced();
  const absl::Status status = absl::FailedPreconditionError(
      absl::StrCat(ToString(state_.self()),
                   " was declared lost and must restart: it ", reason));
  for (const auto& peer : peers_.All()) {
    if (peer->info().incarnation != state_.self().incarnation) {
      OnLost(peer, status);
    }
  }
}

// Earlier messages of a service to that worker may have been processed there.
void PeerMembership::Report(const std::shared_ptr<Peer>& peer,
                            const absl::Status& status) {
  if (!reporting_.load()) return;
  options_.on_peer_lost(peer->info(), WithErrorDetail(status, peer->info(),
                                                      /*maybe_applied=*/true));
}

async::Future<void> PeerMembership::WhenPeerLost() {
  async::Promise<void> promise;
  async::Future<void> lost = promise.future();
  {
    async::MutexLock lock(&mutex_);
    await_loss_.push_back(std::move(promise));
  }
  CheckDeparted();
  return lost;
}

async::Future<void> PeerMembership::WhenAlone() {
  async::Promise<void> promise;
  async::Future<void> alone = promise.future();
  {
    async::MutexLock lock(&mutex_);
    await_alone_.push_back(std::move(promise));
  }
  CheckDeparted();
  return alone;
}

void PeerMembership::CheckDeparted() {
  const absl::Status lost = CheckPeers();
  const bool alone = IsAlone();
  std::vector<async::Promise<void>> told;
  std::vector<async::Promise<void>> alone_told;
  {
    async::MutexLock lock(&mutex_);
    if (!lost.ok()) told.swap(await_loss_);
    if (alone) alone_told.swap(await_alone_);
  }
  for (async::Promise<void>& promise : told) promise.Set(lost);
  for (async::Promise<void>& promise : alone_told) {
    promise.Set(absl::OkStatus());
  }
}

bool PeerMembership::IsAlone() const {
  for (const auto& peer : peers_.All()) {
    const Incarnation incarnation = peer->info().incarnation;
    if (incarnation != state_.self().incarnation &&
        !peers_.HasDeparted(incarnation)) {
      return false;
    }
  }
  return true;
}

absl::Status PeerMembership::CheckPeers() const {
  for (const auto& peer : peers_.All()) {
    if (!peer->lost() || peer->left()) continue;
    RETURN_IF_ERROR(WithErrorDetail(peer->connection().status(), peer->info(),
                                    /*maybe_applied=*/false));
  }
  return absl::OkStatus();
}

store::Barrier PeerMembership::BarrierOf(std::string_view name,
                                         Incarnation coordinator) const {
  return records_.BarrierOf(name, coordinator);
}

async::Future<void> PeerMembership::NotifyPeers(async::MonotonicTime deadline) {
  const async::MonotonicTime limit = std::min(
      deadline,
      async::AddDelay(state_.clock().Now(), options_.liveness.silent_limit));
  std::vector<async::Future<void>> answers;
  for (const auto& peer : peers_.All()) {
    if (peer->info().incarnation == state_.self().incarnation || peer->lost() ||
        !peer->watched()) {
      continue;
    }
    async::Promise<void> answered;
    answers.push_back(answered.future());
    options_.control->NotifyLeave(
        peer, limit,
        [answered = std::move(answered)](absl::Status status) mutable {
          answered.Set(std::move(status));
        });
  }
  return async::JoinAll(std::move(answers));
}

absl::Status PeerMembership::Withdraw() {
  return WithdrawAs(LeftEvent(state_.self().incarnation));
}

absl::Status PeerMembership::WithdrawAsLost() {
  const Incarnation self = state_.self().incarnation;
  return WithdrawAs(LostEvent(self, self, "stopped without leaving the job"));
}

absl::Status PeerMembership::WithdrawAs(const v1::MembershipEvent& departure) {
  const Incarnation self = state_.self().incarnation;
  // If the store does not reply to the first request, the others are left out.
  RETURN_IF_ERROR(log_.ReadLease(self).status());
  absl::Status status = records_.Withdraw(state_.self());
  status.Update(log_.Append(departure));
  status.Update(log_.DropLease(self));
  return status;
}

void PeerMembership::Stop() {
  if (monitor_ != nullptr) monitor_->Stop();
  if (membership_ != nullptr) membership_->Stop();
  watches_.Stop();
}

void PeerMembership::Disconnect() {
  for (const auto& peer : peers_.All()) peer->Disconnect();
}

}  // namespace hawser::rpc
