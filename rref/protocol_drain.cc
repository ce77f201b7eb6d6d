// Graceful shutdown of the reference protocol.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rref/protocol.h"

namespace hawser::rref {

async::Future<void> Protocol::Drain(async::MonotonicTime deadline) {
  async::Future<void> drained;
  {
    async::MutexLock lock(&mutex_);
    drain_step_ = DrainStep::kSettling;
    drained_.emplace();
    drained = drained_->future();
  }
  // Workers do not call each other any more: messages that have not arrived yet
  // never will. Two audits withdraw all forks that were not acknowledged.
  Audit();
  Audit();
  const rpc::HostHandle::Use host = host_.Acquire();
  if (host) {
    // Early enough to return the list of remaining references.
    const async::MonotonicTime report = async::AddDelay(
        host->clock().Now(),
        0.9 * async::TimeBetween(host->clock().Now(), deadline));
    const async::TimerId timer =
        host->clock().CallAt(report, [weak = weak_from_this()] {
          const std::shared_ptr<Protocol> self = weak.lock();
          if (self == nullptr) return;
          self->FinishDrain(absl::DeadlineExceededError(self->DescribeLeaks()));
        });
    async::MutexLock lock(&mutex_);
    drain_timer_ = timer;
  }
  AdvanceDrain();
  return drained;
}

void Protocol::AdvanceDrain() {
  {
    async::MutexLock lock(&mutex_);
    if (drain_step_ == DrainStep::kServing ||
        drain_step_ == DrainStep::kDrained) {
      return;
    }
  }
  const Counts now = counts();
  bool close = false;
  {
    async::MutexLock lock(&mutex_);
    if (drain_step_ == DrainStep::kSettling &&
        now.user.unconfirmed_users == 0 && now.user.pending_children == 0 &&
        now.control_operations == 0) {
      drain_step_ = DrainStep::kClosing;
      close = true;
    }
  }
  if (close) {
    Run(users_.Close());
    {
      async::MutexLock lock(&mutex_);
      drain_step_ = DrainStep::kClosed;
    }
    AdvanceDrain();
    return;
  }
  bool finish = false;
  {
    async::MutexLock lock(&mutex_);
    finish = drain_step_ == DrainStep::kClosed && now.control_operations == 0 &&
             (now.owner.remote_forks == 0 || !options_.wait_for_users);
  }
  if (finish) FinishDrain(absl::OkStatus());
}

void Protocol::FinishDrain(absl::Status status) {
  std::optional<async::Promise<void>> drained;
  {
    async::MutexLock lock(&mutex_);
    if (drain_step_ == DrainStep::kDrained) return;
    drain_step_ = DrainStep::kDrained;
    drained.swap(drained_);
  }
  if (drained.has_value()) drained->Set(std::move(status));
}

std::string Protocol::DescribeLeaks() const {
  constexpr size_t kMaxNamed = 16;
  const Counts now = counts();
  std::string text = absl::StrCat(
      "references remain: ", now.user.unconfirmed_users, " unconfirmed, ",
      now.user.pending_children, " sent and not acknowledged, ",
      now.control_operations, " control operations, ", now.owner.remote_forks,
      " held by other workers on values of this worker");
  const std::vector<OwnerTable::Fork> forks = owners_.forks();
  for (size_t i = 0; i < forks.size() && i < kMaxNamed; ++i) {
    absl::StrAppend(&text, i == 0 ? ": " : ", ", forks[i].rref.ToString(),
                    " by worker ", forks[i].holder.id.value());
  }
  return text;
}

void Protocol::Interrupt() {
  Run(owners_.StopAwaiting(
      absl::UnavailableError("the worker is leaving or was shut down: the "
                             "value will not be created")));
}

void Protocol::Stop() {
  std::optional<async::TimerId> audit, drain;
  {
    async::MutexLock lock(&mutex_);
    audit = audit_timer_;
    drain = drain_timer_;
  }
  if (const rpc::HostHandle::Use host = host_.Acquire()) {
    if (audit.has_value()) host->clock().Cancel(*audit);
    if (drain.has_value()) host->clock().Cancel(*drain);
  }
  host_.Revoke();
  FinishDrain(absl::CancelledError("the worker was stopped"));
  // Messages cannot be sent any more, so this only completes the waiting
  // futures.
  Run(users_.Close());
  Run(owners_.Close(absl::CancelledError("the worker was shut down")));
}

}  // namespace hawser::rref
