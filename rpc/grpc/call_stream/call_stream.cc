#include "rpc/grpc/call_stream/call_stream.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "rpc/grpc/grpc_time.h"

namespace hawser::rpc {
namespace {

// A deadline that is handled as late as this was missed by the process, which
// was stopped or starved. Replies may have arrived in time.
constexpr absl::Duration kStall = absl::Milliseconds(100);
// Time to read them.
constexpr absl::Duration kTimeToRead = absl::Milliseconds(20);

}  // namespace

void CallStream::Start() { ReadNext(); }

void CallStream::LimitReplies(std::shared_ptr<net::PerPeerQuota> quota,
                              std::string peer) {
  unread_ = UnreadReplies(std::move(quota), std::move(peer));
}

void CallStream::Close(absl::Status status) {
  async::MutexLock lock(&mutex_);
  if (ended()) return;
  EndStreamLocked(status);
  EndLocked(std::move(status));
}

void CallStream::End(absl::Status status) {
  async::MutexLock lock(&mutex_);
  EndLocked(std::move(status));
}

void CallStream::EndLocked(absl::Status status) {
  if (ended_.exchange(true, std::memory_order_acq_rel)) return;
  batches_.clear();
  batched_bytes_ = 0;
  unread_.Clear();
  long_replies_.clear();
  num_replies_waiting_.store(0, std::memory_order_relaxed);
  if (alarm_set_) alarm_.Cancel();
  // OnEnd must not run in the closing thread.
  options_.poller->Post([handler = handler_, status = std::move(status)] {
    if (handler != nullptr) handler->OnEnd(status);
  });
}

void CallStream::WakeBy(async::MonotonicTime time) {
  async::MutexLock lock(&mutex_);
  if (ended() || time >= wake_at_) return;
  wake_at_ = time;
  if (alarm_set_) {
    // OnTimer sets it again.
    alarm_.Cancel();
  } else {
    SetTimerLocked();
  }
}

void CallStream::SetTimerLocked() {
  if (wake_at_ == async::kNever || ended()) return;
  Gate::Entry entry(options_.gate.get());
  if (!entry) return;
  alarm_set_ = true;
  timer_.self = shared_from_this();
  alarm_.Set(options_.poller->queue(), ToGrpcTime(wake_at_),
             static_cast<net::CompletionEvent*>(&timer_));
}

void CallStream::OnTimer(bool) {
  const async::MonotonicTime now = std::chrono::steady_clock::now();
  bool due = false;
  {
    async::MutexLock lock(&mutex_);
    alarm_set_ = false;
    if (ended()) return;
    due = wake_at_ <= now;
    if (due && async::TimeBetween(wake_at_, now) > kStall) {
      wake_at_ = async::AddDelay(now, kTimeToRead);
      due = false;
    }
    if (due) wake_at_ = async::kNever;
  }
  const async::MonotonicTime next = due ? handler_->OnTime(now) : async::kNever;
  async::MutexLock lock(&mutex_);
  wake_at_ = std::min(wake_at_, next);
  if (!alarm_set_) SetTimerLocked();
}

}  // namespace hawser::rpc
