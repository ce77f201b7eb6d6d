#include "ps/clock/clock_gate.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/future.h"
#include "async/mutex.h"
#include "async/status_macros.h"
#include "net/per_peer_quota.h"
#include "proto/ps.pb.h"
#include "ps/clock/decoded_push.h"
#include "ps/storage/consistency.h"
#include "ps/storage/logged_table.h"
#include "ps/storage/sparse_table.h"
#include "ps/storage/table_partition.h"
#include "ps/storage/worker_clocks.h"
#include "rpc/agent/host_handle.h"
#include "rpc/functions/method.h"
#include "rpc/identity/worker_info.h"
#include "telemetry/log.h"

namespace hawser::ps {
namespace {

// Time for the answer to a request that waited in vain to reach its caller
// before the deadline: a tenth of what is left, and no more than this.
constexpr absl::Duration kMaxAnswerTime = absl::Milliseconds(500);
// That wait for one push. When a push is sent again, earlier calls have ended,
// or their replies would be lost.
constexpr size_t kMaxCallsOfPush = 4;

v1::ClockEvent EventOf(v1::ClockEvent::Kind kind, rpc::Incarnation worker,
                       WorkerTime time) {
  v1::ClockEvent event;
  event.set_kind(kind);
  event.set_worker(rpc::ToNumber(worker));
  event.set_join(time.join);
  event.set_clock(time.clock);
  return event;
}

}  // namespace

ClockGate::ClockGate(std::shared_ptr<LoggedTable> table,
                     std::shared_ptr<net::PerPeerQuota> quota,
                     std::shared_ptr<rpc::HostHandle> host)
    : table_(std::move(table)),
      clocks_(*table_->clocks()),
      quota_(std::move(quota)),
      host_(std::move(host)) {
  for (auto& [worker, name] : clocks_.Workers()) {
    unseen_.emplace(worker, std::move(name));
  }
}

absl::Status ClockGate::WithPrefix(const absl::Status& status) const {
  if (status.ok()) return status;
  return {status.code(), absl::StrCat("table \"", table_->table().spec().name,
                                      "\": ", std::string(status.message()))};
}

absl::StatusOr<uint64_t> ClockGate::Park(const rpc::MethodCall& call, Kind kind,
                                         WorkerTime time,
                                         async::Future<void>& future) {
  RETURN_IF_ERROR(closed_);
  net::PerPeerQuota::Reservation reservation;
  if (kind != Kind::kPush) {
    ASSIGN_OR_RETURN(reservation,
                     quota_->Admit(call.peer.name, call.request_bytes));
  }
  async::Promise<void> promise;
  future = promise.future();
  const uint64_t id = ++last_id_;
  parked_.emplace(id, Parked{kind, call.peer.incarnation, time,
                             std::move(promise), std::move(reservation)});
  return id;
}

void ClockGate::Watch(uint64_t id, const rpc::MethodCall& call) {
  const std::weak_ptr<ClockGate> gate = weak_from_this();
  rpc::Cancellation::Registration registration;
  if (call.cancellation != nullptr) {
    registration = call.cancellation->OnCancel([gate, id] {
      if (const auto self = gate.lock()) {
        self->End(id, absl::CancelledError("the call was cancelled"));
      }
    });
  }
  std::optional<async::TimerId> timer;
  const rpc::HostHandle::Use host = host_->Acquire();
  if (host && call.deadline != async::kNever) {
    async::Clock& clock = host->clock();
    const absl::Duration left = async::TimeBetween(clock.Now(), call.deadline);
    timer = clock.CallAt(
        async::AddDelay(call.deadline, -std::min(left / 10, kMaxAnswerTime)),
        [gate, id] {
          if (const auto self = gate.lock()) self->OnDeadline(id);
        });
  }
  bool waits = false;
  {
    const async::MutexLock lock(&mutex_);
    const auto parked = parked_.find(id);
    waits = parked != parked_.end();
    if (waits) {
      parked->second.timer = timer;
      parked->second.cancellation = std::move(registration);
    }
  }
  if (!waits && timer.has_value()) host->clock().Cancel(*timer);
}

void ClockGate::Take(uint64_t id, const absl::Status& status,
                     Answers& answers) {
  const auto parked = parked_.find(id);
  if (parked == parked_.end()) return;
  answers.emplace_back(std::move(parked->second), status);
  parked_.erase(parked);
}

void ClockGate::Send(Answers answers) {
  for (auto& [parked, status] : answers) {
    if (parked.timer.has_value()) {
      const rpc::HostHandle::Use host = host_->Acquire();
      if (host) host->clock().Cancel(*parked.timer);
    }
    parked.promise.Set(status);
  }
}

void ClockGate::End(uint64_t id, const absl::Status& status) {
  Answers answers;
  {
    const async::MutexLock lock(&mutex_);
    Take(id, status, answers);
  }
  Send(std::move(answers));
}

void ClockGate::OnDeadline(uint64_t id) {
  Answers answers;
  {
    const async::MutexLock lock(&mutex_);
    const auto found = parked_.find(id);
    if (found == parked_.end()) return;
    const Parked& parked = found->second;
    std::string text;
    switch (parked.kind) {
      case Kind::kPull:
        text = absl::StrCat("a pull at clock ", parked.time.clock, " waited ",
                            clocks_.WaitsFor(parked.worker, parked.time));
        break;
      case Kind::kPush:
        text = absl::StrCat(
            "a push of clock ", parked.time.clock, " waited ",
            clocks_.WaitsFor(parked.worker,
                             {parked.time.join, parked.time.clock + 1}),
            "; do not wait for a push before the clock is advanced");
        break;
      case Kind::kLeave:
        text = absl::StrCat("to leave at clock ", parked.time.clock,
                            ", the worker's pushes must arrive");
        break;
    }
    Take(id, WithPrefix(absl::DeadlineExceededError(text)), answers);
  }
  Send(std::move(answers));
}

void ClockGate::CountPull(WorkerTime time) {
  const int64_t staleness =
      std::clamp<int64_t>(time.clock - clocks_.completed(), 0,
                          static_cast<int64_t>(pulls_by_staleness_.size()) - 1);
  ++pulls_by_staleness_[static_cast<size_t>(staleness)];
}

async::Future<void> ClockGate::AwaitPull(const rpc::MethodCall& call,
                                         WorkerTime time) {
  async::Future<void> future;
  absl::StatusOr<uint64_t> id;
  {
    const async::MutexLock lock(&mutex_);
    unseen_.erase(call.peer.incarnation);
    const absl::StatusOr<bool> ready =
        clocks_.CanPull(call.peer.incarnation, time);
    if (!ready.ok()) {
      return async::MakeReadyFuture<void>(WithPrefix(ready.status()));
    }
    if (*ready) {
      CountPull(time);
      return async::MakeReadyFuture<void>(absl::OkStatus());
    }
    id = Park(call, Kind::kPull, time, future);
  }
  if (!id.ok()) return async::MakeReadyFuture<void>(WithPrefix(id.status()));
  Watch(*id, call);
  LookUpWorkers();
  return future;
}

absl::Status ClockGate::CheckPush(const rpc::MethodCall& call,
                                  uint64_t sequence, WorkerTime time) const {
  return WithPrefix(
      clocks_.FindPush({call.peer.incarnation, sequence}, time).status());
}

async::Future<void> ClockGate::Push(const rpc::MethodCall& call,
                                    DecodedPush push) {
  const PushId push_id = push.id;
  const WorkerTime time = push.time;
  const PushKey key{time.clock, call.peer.name, push_id.client,
                    push_id.sequence};
  async::Future<void> future;
  Answers answers;
  const auto park = [&]() -> absl::StatusOr<uint64_t> {
    const async::MutexLock lock(&mutex_);
    unseen_.erase(push_id.client);
    ASSIGN_OR_RETURN(const WorkerClocks::PushState state,
                     clocks_.FindPush(push_id, time));
    if (state == WorkerClocks::PushState::kApplied) return 0;
    PendingPushes& pushes = applied_.contains(key) ? applied_ : pending_;
    auto found = pushes.find(key);
    if (found == pushes.end()) {
      if (state == WorkerClocks::PushState::kArrived) {
        return absl::FailedPreconditionError(absl::StrCat(
            "push ", push_id.sequence, " of clock ", time.clock,
            " was dropped: it failed, or its worker left before the clock was "
            "complete"));
      }
      ASSIGN_OR_RETURN(net::PerPeerQuota::Reservation reservation,
                       quota_->Admit(call.peer.name, push.bytes()));
      found = pushes
                  .emplace(key,
                           PendingPush{std::move(push), std::move(reservation)})
                  .first;
    }
    const absl::StatusOr<uint64_t> id = Park(call, Kind::kPush, time, future);
    if (!id.ok()) {
      if (state == WorkerClocks::PushState::kNew) pushes.erase(found);
      return id;
    }
    std::vector<uint64_t>& calls = found->second.calls;
    calls.push_back(*id);
    if (calls.size() > kMaxCallsOfPush) {
      Take(calls.front(), absl::UnavailableError("the push was sent again"),
           answers);
      calls.erase(calls.begin());
    }
    if (state == WorkerClocks::PushState::kNew) {
      clocks_.PushArrived(push_id, time);
    }
    return id;
  };
  const absl::StatusOr<uint64_t> id = park();
  Send(std::move(answers));
  if (!id.ok()) return async::MakeReadyFuture<void>(WithPrefix(id.status()));
  if (*id == 0) return async::MakeReadyFuture<void>(absl::OkStatus());
  Watch(*id, call);
  LookUpWorkers();
  Proceed();
  return future;
}

absl::StatusOr<int64_t> ClockGate::Join(const rpc::MethodCall& call,
                                        const v1::JoinClockRequest& request) {
  const rpc::WorkerInfo& worker = call.peer;
  const rpc::HostHandle::Use host = host_->Acquire();
  if (!host) return absl::UnavailableError("the server was shut down");
  const absl::StatusOr<rpc::WorkerInfo> found = host->FindWorker(worker);
  if (!found.ok() && absl::IsUnavailable(found.status())) {
    return found.status();
  }
  if (!found.ok() || found->incarnation != worker.incarnation) {
    return WithPrefix(absl::FailedPreconditionError(
        absl::StrCat("only workers of the job may join the clock, so that "
                     "their end is noticed; ",
                     rpc::ToString(worker), " is none")));
  }
  v1::ClockEvent event = EventOf(v1::ClockEvent::JOIN, worker.incarnation,
                                 {request.join(), request.clock()});
  event.set_name(worker.name);
  event.set_num_workers(request.num_workers());
  {
    const async::MutexLock lock(&mutex_);
    unseen_.erase(worker.incarnation);
  }
  RETURN_IF_ERROR(WithPrefix(table_->Record(event)));
  // The news of its end may have come before it was recorded.
  if (host->IsLost(worker)) {
    Lose(worker.incarnation);
    return absl::FailedPreconditionError(
        absl::StrCat(rpc::ToString(worker), " was declared lost"));
  }
  Proceed();
  return clocks_.ClockOf(worker.incarnation);
}

absl::Status ClockGate::Advance(const rpc::MethodCall& call,
                                const v1::AdvanceClockRequest& request) {
  v1::ClockEvent event = EventOf(v1::ClockEvent::ADVANCE, call.peer.incarnation,
                                 {request.join(), request.clock()});
  event.set_num_pushes(request.num_pushes());
  RETURN_IF_ERROR(WithPrefix(table_->Record(event)));
  Proceed();
  return absl::OkStatus();
}

async::Future<void> ClockGate::Leave(const rpc::MethodCall& call,
                                     const v1::LeaveClockRequest& request) {
  const WorkerTime time{request.join(), request.clock()};
  const absl::Status status = table_->Record(EventOf(
      request.abandon() ? v1::ClockEvent::ABANDON : v1::ClockEvent::LEAVE,
      call.peer.incarnation, time));
  if (!status.ok()) return async::MakeReadyFuture<void>(WithPrefix(status));
  Proceed();
  async::Future<void> future;
  absl::StatusOr<uint64_t> id;
  {
    const async::MutexLock lock(&mutex_);
    if (clocks_.HasLeft(call.peer.incarnation, time.join)) {
      return async::MakeReadyFuture<void>(absl::OkStatus());
    }
    id = Park(call, Kind::kLeave, time, future);
  }
  if (!id.ok()) return async::MakeReadyFuture<void>(WithPrefix(id.status()));
  Watch(*id, call);
  return future;
}

void ClockGate::Lose(rpc::Incarnation worker) {
  {
    const async::MutexLock lock(&mutex_);
    unseen_.erase(worker);
  }
  const absl::Status status =
      table_->Record(EventOf(v1::ClockEvent::LOST, worker, {}));
  if (!status.ok()) {
    telemetry::Log(telemetry::LogSeverity::kWarning,
                   std::string(WithPrefix(status).message()));
  }
  Proceed();
}

std::optional<absl::Status> ClockGate::AnswerOf(const Parked& parked) {
  if (parked.kind == Kind::kLeave) {
    if (!clocks_.HasLeft(parked.worker, parked.time.join)) return std::nullopt;
    return absl::OkStatus();
  }
  if (parked.kind == Kind::kPush) return std::nullopt;
  const absl::StatusOr<bool> ready =
      clocks_.CanPull(parked.worker, parked.time);
  if (!ready.ok()) return WithPrefix(ready.status());
  if (!*ready) return std::nullopt;
  CountPull(parked.time);
  return absl::OkStatus();
}

void ClockGate::TakeReady(Answers& answers) {
  std::vector<std::pair<uint64_t, absl::Status>> ready;
  for (const auto& [id, parked] : parked_) {
    if (std::optional<absl::Status> answer = AnswerOf(parked)) {
      ready.emplace_back(id, *std::move(answer));
    }
  }
  for (const auto& [id, answer] : ready) Take(id, answer, answers);
}

void ClockGate::DropPushes(Answers& answers) {
  for (auto it = pending_.begin(); it != pending_.end();) {
    const auto& [key, pending] = *it;
    if (clocks_.Counts(key.worker, pending.push.time)) {
      ++it;
      continue;
    }
    for (uint64_t call : pending.calls) {
      Take(call,
           WithPrefix(absl::FailedPreconditionError(
               absl::StrCat("a push of clock ", key.clock, " was dropped: '",
                            key.name, "' left before the clock was complete"))),
           answers);
    }
    it = pending_.erase(it);
  }
}

bool ClockGate::TakeClock() {
  if (applies_ || clocks_.applied() >= clocks_.completed()) return false;
  applies_ = true;
  const int64_t clock = clocks_.applied();
  while (!pending_.empty() && pending_.begin()->first.clock <= clock) {
    applied_.insert(pending_.extract(pending_.begin()));
  }
  return true;
}

absl::Status ClockGate::ApplyPush(const DecodedPush& push) {
  ASSIGN_OR_RETURN(const std::vector<PartitionRange> ranges,
                   table_->table().SplitOrdered(push.keys));
  ASSIGN_OR_RETURN(const PushOutcome outcome,
                   table_->Push(push.view(), ranges));
  table_->statistics().CountPush(outcome, push.keys.size(),
                                 push.values.size() * sizeof(float));
  return absl::OkStatus();
}

void ClockGate::ApplyClock() {
  std::vector<std::pair<PushKey, const DecodedPush*>> pushes;
  {
    const async::MutexLock lock(&mutex_);
    for (const auto& [key, pending] : applied_) {
      pushes.emplace_back(key, &pending.push);
    }
  }
  std::vector<absl::Status> results;
  results.reserve(pushes.size());
  for (const auto& [key, push] : pushes) {
    results.push_back(WithPrefix(ApplyPush(*push)));
  }
  Answers answers;
  {
    const async::MutexLock lock(&mutex_);
    for (size_t i = 0; i < pushes.size(); ++i) {
      for (uint64_t call : applied_.at(pushes[i].first).calls) {
        Take(call, results[i], answers);
      }
    }
    applied_.clear();
    clocks_.FinishClock();
    applies_ = false;
  }
  Send(std::move(answers));
}

// Steps:
//   1. Drop the pushes of workers that left before they completed their clock.
//   2. Take the pushes of the next clock, if it is complete.
//   3. Answer the requests that need not wait any more.
//   4. Apply the pushes that were taken, and begin again.
// While one thread applies pushes, others only answer requests; it looks for
// the next clock when it is done.
void ClockGate::Proceed() {
  bool took = true;
  while (took) {
    Answers answers;
    {
      const async::MutexLock lock(&mutex_);
      DropPushes(answers);
      took = TakeClock();
      TakeReady(answers);
    }
    Send(std::move(answers));
    if (took) ApplyClock();
  }
}

void ClockGate::LookUpWorkers() {
  {
    const async::MutexLock lock(&mutex_);
    if (looks_up_ || unseen_.empty()) return;
    looks_up_ = true;
  }
  const rpc::HostHandle::Use host = host_->Acquire();
  if (!host) return;
  host->executor().Post([self = shared_from_this()] {
    std::map<rpc::Incarnation, std::string> workers;
    {
      const async::MutexLock lock(&self->mutex_);
      workers = self->unseen_;
    }
    for (const auto& [incarnation, name] : workers) {
      self->LookUp(incarnation, name);
    }
    const async::MutexLock lock(&self->mutex_);
    self->looks_up_ = false;
  });
}

void ClockGate::LookUp(rpc::Incarnation incarnation, const std::string& name) {
  absl::Status status;
  {
    const rpc::HostHandle::Use host = host_->Acquire();
    if (!host) return;
    rpc::WorkerInfo worker;
    worker.name = name;
    worker.incarnation = incarnation;
    const absl::StatusOr<rpc::WorkerInfo> found = host->FindWorker(worker);
    status = found.status();
    if (found.ok() &&
        (found->incarnation != incarnation || host->IsLost(*found))) {
      status = absl::NotFoundError("it is another one, or lost");
    }
  }
  if (status.ok()) {
    // Its end will be news.
    const async::MutexLock lock(&mutex_);
    unseen_.erase(incarnation);
  } else if (absl::IsNotFound(status) || absl::IsFailedPrecondition(status)) {
    Lose(incarnation);
  }
}

void ClockGate::Close(const absl::Status& status) {
  Answers answers;
  {
    const async::MutexLock lock(&mutex_);
    closed_ = status;
    while (!parked_.empty()) {
      Take(parked_.begin()->first, status, answers);
    }
  }
  Send(std::move(answers));
}

ClockNumbers ClockGate::Numbers() const {
  ClockNumbers numbers;
  numbers.completed = clocks_.completed();
  numbers.num_workers = clocks_.num_workers();
  const async::MutexLock lock(&mutex_);
  numbers.num_parked = static_cast<int64_t>(parked_.size());
  numbers.pulls_by_staleness = pulls_by_staleness_;
  return numbers;
}

}  // namespace hawser::ps
