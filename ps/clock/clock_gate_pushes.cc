// Pushes of a synchronous table, which are applied clock by clock.

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/future.h"
#include "async/mutex.h"
#include "async/status_macros.h"
#include "net/per_peer_quota.h"
#include "ps/clock/clock_gate.h"
#include "ps/clock/decoded_push.h"
#include "ps/storage/logged_table.h"
#include "ps/storage/sparse_table.h"
#include "ps/storage/table_partition.h"
#include "ps/storage/worker_clocks.h"
#include "rpc/functions/method.h"

namespace hawser::ps {
namespace {

// That wait for one push. When a push is sent again, earlier calls have ended,
// or their replies would be lost.
constexpr size_t kMaxCallsOfPush = 4;

}  // namespace

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
    absl::StatusOr<uint64_t> id = Park(call, Kind::kPush, time, future);
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
  Send(answers);
  if (!id.ok()) return async::MakeReadyFuture<void>(WithPrefix(id.status()));
  if (*id == 0) return async::MakeReadyFuture<void>(absl::OkStatus());
  Watch(*id, call);
  LookUpWorkers();
  Proceed();
  return future;
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
  if (applies_) return false;
  const std::optional<int64_t> clock = clocks_.ClockToApply();
  if (!clock.has_value()) return false;
  applies_ = true;
  while (!pending_.empty() && pending_.begin()->first.clock <= *clock) {
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
  Send(answers);
}

// Steps:
//   1. Drop the pushes of workers that left before they completed their clock.
//   2. Take the pushes of the next clock, if it is complete.
//   3. Answer the requests that need not wait any more.
//   4. Apply the pushes that were taken, and begin again.
// While one thread applies pushes, others only answer requests; it looks for
// the next clock when it is done.

}  // namespace hawser::ps
