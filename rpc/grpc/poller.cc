#include "rpc/grpc/poller.h"

#include <chrono>
#include <utility>

namespace hawser::rpc {
namespace {

// Polling stops if this many threads are blocked in events.
constexpr int kMaxThreads = 256;
// Events after which a thread checks whether there are too many threads.
constexpr int kEventsPerTurn = 256;

// Consecutive awaited events before a polling thread yields.
constexpr int kStreak = 8;
// Longest time that events wait after that if no caller polls any more.
constexpr std::chrono::microseconds kPatience{1000};
// Time that a caller polls for its event, outside a BlockingRegion.
constexpr int kMaxPollMs = 5;

}  // namespace

Poller::Poller(std::unique_ptr<::grpc::CompletionQueue> queue,
               PollerOptions options)
    : queue_(std::move(queue)),
      options_(options),
      may_yield_(options.num_threads == 1 && !options.busy),
      threads_({.num_threads = options.num_threads,
                .max_threads = kMaxThreads,
                .name = "rpc-poll"}) {
  // The pool runs `num_threads` of them; the others start when one blocks.
  for (int i = 0; i < kMaxThreads; ++i) threads_.Post([this] { Poll(); });
}

Poller::~Poller() { Shutdown(); }

Poller::NextStatus Poller::SpinUntil(async::MonotonicTime end, Event& event) {
  NextStatus status = NextStatus::TIMEOUT;
  do {
    status = TryNext(event);
  } while (status == NextStatus::TIMEOUT &&
           std::chrono::steady_clock::now() < end);
  return status;
}

Poller::NextStatus Poller::TryNext(Event& event) {
  void* tag = nullptr;
  const NextStatus status =
      queue_->AsyncNext(&tag, &event.ok, gpr_time_0(GPR_CLOCK_MONOTONIC));
  event.event = static_cast<CompletionEvent*>(tag);
  return status;
}

Poller::NextStatus Poller::Spin(absl::Duration spin, ipc::SpinPolicy& policy,
                                Event& event) {
  if (spin <= absl::ZeroDuration() || !policy.Begin()) {
    return NextStatus::TIMEOUT;
  }
  // Does not read the clock if an event is waiting.
  NextStatus status = TryNext(event);
  if (status == NextStatus::TIMEOUT) {
    status = SpinUntil(async::AddDelay(std::chrono::steady_clock::now(), spin),
                       event);
  }
  policy.End();
  return status;
}

bool Poller::Next(Event& event) {
  const NextStatus status = options_.busy
                                ? SpinUntil(async::kNever, event)
                                : Spin(options_.spin, thread_spins_, event);
  if (status != NextStatus::TIMEOUT) return status == NextStatus::GOT_EVENT;
  void* tag = nullptr;
  const bool got = queue_->Next(&tag, &event.ok);
  event.event = static_cast<CompletionEvent*>(tag);
  return got;
}

bool Poller::TakeHandedOver(Event& event) {
  async::MutexLock lock(&mutex_);
  if (handed_over_.empty()) return false;
  event = handed_over_.front();
  handed_over_.pop_front();
  return true;
}

void Poller::Poll() {
  Event next;
  for (int i = 0; i < kEventsPerTurn; ++i) {
    if (streak_.load(std::memory_order_relaxed) >= kStreak) Yield();
    if (may_yield_ && TakeHandedOver(next)) {
      next.event->OnEvent(next.ok);
      continue;
    }
    if (!Next(next)) return;
    if (may_yield_) {
      if (awaited_.load(std::memory_order_relaxed) == next.event) {
        streak_.fetch_add(1, std::memory_order_relaxed);
      } else {
        streak_.store(0, std::memory_order_relaxed);
      }
    }
    next.event->OnEvent(next.ok);
  }
  threads_.Post([this] { Poll(); });
}

void Poller::Yield() {
  async::MutexLock lock(&mutex_);
  // Earlier yielding threads may not have woken from a resume yet. Until they
  // have, no caller may poll in their place, since they would not be woken
  // again.
  if (++num_yielding_ == 1) resume_ = false;
  while (!resume_ && !stopping_ && handed_over_.empty()) {
    polled_ = polling_;
    resumed_.WaitUntil(&mutex_, std::chrono::steady_clock::now() + kPatience);
    if (!polled_) break;
  }
  --num_yielding_;
  streak_.store(0, std::memory_order_relaxed);
}

Poller::Polled Poller::PollFor(const CompletionEvent* event,
                               absl::FunctionRef<bool()> pending,
                               absl::Duration spin) {
  {
    async::MutexLock lock(&mutex_);
    if (num_yielding_ == 0 || polling_ || resume_ || stopping_) {
      return Polled::kByThreads;
    }
    polling_ = polled_ = true;
  }
  Event next;
  NextStatus status = NextStatus::TIMEOUT;
  const bool was_pending = pending();
  if (was_pending) status = Spin(spin, caller_spins_, next);
  if (was_pending && status == NextStatus::TIMEOUT) {
    void* tag = nullptr;
    status = queue_->AsyncNext(
        &tag, &next.ok,
        gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                     gpr_time_from_millis(kMaxPollMs, GPR_TIMESPAN)));
    next.event = static_cast<CompletionEvent*>(tag);
  }
  const bool got = status == NextStatus::GOT_EVENT;
  // The address of an event that is no longer pending may have been reused.
  const bool mine = got && next.event == event && pending();
  {
    async::MutexLock lock(&mutex_);
    polling_ = false;
    if (got && !mine) handed_over_.push_back(next);
    if (!mine) {
      resume_ = true;
      resumed_.NotifyAll();
    }
  }
  if (mine) {
    next.event->OnEvent(next.ok);
    return Polled::kHandled;
  }
  return was_pending && status == NextStatus::TIMEOUT ? Polled::kInVain
                                                      : Polled::kByThreads;
}

void Poller::Shutdown() {
  {
    async::MutexLock lock(&mutex_);
    if (std::exchange(stopping_, true)) return;
    resumed_.NotifyAll();
  }
  queue_->Shutdown();
  threads_.Shutdown();
}

}  // namespace hawser::rpc
