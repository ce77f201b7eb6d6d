// Requests that wait: until they are answered, cancelled, or near their
// deadline.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/future.h"
#include "async/mutex.h"
#include "async/status_macros.h"
#include "net/per_peer_quota.h"
#include "ps/clock/clock_gate.h"
#include "ps/storage/worker_clocks.h"
#include "rpc/agent/host_handle.h"
#include "rpc/functions/method.h"

namespace hawser::ps {
namespace {

// Time for the answer to a request that waited in vain to reach its caller
// before the deadline: a tenth of what is left, and no more than this.
constexpr absl::Duration kMaxAnswerTime = absl::Milliseconds(500);

}  // namespace

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

void ClockGate::Send(Answers& answers) {
  for (auto& [parked, status] : answers) {
    if (parked.timer.has_value()) {
      const rpc::HostHandle::Use host = host_->Acquire();
      if (host) host->clock().Cancel(*parked.timer);
    }
    parked.promise.Set(status);
  }
  answers.clear();
}

void ClockGate::End(uint64_t id, const absl::Status& status) {
  Answers answers;
  {
    const async::MutexLock lock(&mutex_);
    Take(id, status, answers);
  }
  Send(answers);
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
  Send(answers);
}

}  // namespace hawser::ps
