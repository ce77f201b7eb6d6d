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
#include "async/future.h"
#include "async/mutex.h"
#include "async/status_macros.h"
#include "net/per_peer_quota.h"
#include "proto/ps.pb.h"
#include "proto/table_files.pb.h"
#include "ps/storage/logged_table.h"
#include "ps/storage/sparse_table.h"
#include "ps/storage/worker_clocks.h"
#include "rpc/agent/host_handle.h"
#include "rpc/functions/method.h"
#include "rpc/identity/worker_info.h"
#include "telemetry/log.h"

namespace hawser::ps {
namespace {

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
    Send(answers);
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
  Send(answers);
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
