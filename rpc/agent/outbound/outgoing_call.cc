#include "rpc/agent/outbound/outgoing_call.h"

#include <utility>

#include "async/busy_timer.h"

namespace hawser::rpc {
namespace {

void CancelAttempt(const std::weak_ptr<Connection>& weak,
                   Connection::CallId id) {
  if (std::shared_ptr<Connection> connection = weak.lock()) {
    connection->Cancel(id);
  }
}

// The call of whose PollUntil the calling thread is part.
thread_local const OutgoingCall* awaited_call = nullptr;

}  // namespace

void OutgoingCall::Cancel() {
  std::optional<Attempt> attempt;
  {
    async::MutexLock lock(&mutex_);
    if (std::exchange(cancelled_, true)) return;
    attempt = attempt_;
  }
  if (attempt.has_value()) CancelAttempt(attempt->connection, attempt->id);
}

bool OutgoingCall::cancelled() const {
  async::MutexLock lock(&mutex_);
  return cancelled_;
}

void OutgoingCall::FollowParent(Cancellation& parent) {
  // The callback may run at once: no lock may be held.
  Cancellation::Registration registration =
      parent.OnCancel([weak = weak_from_this()] {
        if (auto call = weak.lock()) call->Cancel();
      });
  async::MutexLock lock(&mutex_);
  std::swap(parent_, registration);
}

uint64_t OutgoingCall::BeginAttempt() {
  async::MutexLock lock(&mutex_);
  return ++last_begun_;
}

void OutgoingCall::SetAttempt(uint64_t number,
                              const std::shared_ptr<Connection>& connection,
                              Connection::CallId id) {
  {
    async::MutexLock lock(&mutex_);
    if (number <= last_ended_) return;
    attempt_ = Attempt{connection, id};
    if (!cancelled_) return;
  }
  connection->Cancel(id);
}

void OutgoingCall::EndAttempt(uint64_t number) {
  Cancellation::Registration registration;
  async::MutexLock lock(&mutex_);
  last_ended_ = number;
  attempt_.reset();
  std::swap(parent_, registration);
}

void OutgoingCall::PollUntil(absl::FunctionRef<bool()> done) {
  std::optional<Attempt> attempt;
  {
    async::MutexLock lock(&mutex_);
    attempt = attempt_;
  }
  if (!attempt.has_value()) return;
  if (std::shared_ptr<Connection> connection = attempt->connection.lock()) {
    async::BusyTimer::Pause pause;
    const OutgoingCall* const outer = std::exchange(awaited_call, this);
    connection->AwaitReply(attempt->id, done);
    awaited_call = outer;
  }
}

bool OutgoingCall::IsAwaitedHere() const { return awaited_call == this; }

}  // namespace hawser::rpc
