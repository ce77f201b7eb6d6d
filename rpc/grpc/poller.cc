#include "rpc/grpc/poller.h"

#include <chrono>
#include <thread>
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
// Time that a thread polls for its event, outside a BlockingRegion.
constexpr int kMaxPollMs = 5;

// The poller of which the calling thread is a polling thread. It runs what is
// posted before it waits.
thread_local const Poller* polling_for = nullptr;
// The poller in whose PollInEvent the calling thread is.
thread_local const Poller* polling_in_event_of = nullptr;

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
    // The event may come from a thread that waits for this processor; with busy
    // polling, threads have processors of their own.
    if (status == NextStatus::TIMEOUT && !options_.busy) {
      std::this_thread::yield();
    }
  } while (status == NextStatus::TIMEOUT &&
           std::chrono::steady_clock::now() < end);
  return status;
}

Poller::NextStatus Poller::TryNext(Event& event) {
  void* tag = nullptr;
  const NextStatus status =
      queue_->AsyncNext(&tag, &event.ok, gpr_time_0(GPR_CLOCK_MONOTONIC));
  event.event = static_cast<net::CompletionEvent*>(tag);
  return status;
}

Poller::NextStatus Poller::Spin(absl::Duration spin, ipc::SpinPolicy& policy,
                                std::optional<async::MonotonicTime>& end,
                                Event& event) {
  if (spin <= absl::ZeroDuration() || !policy.Begin()) {
    return NextStatus::TIMEOUT;
  }
  // Does not read the clock if an event is waiting.
  NextStatus status = TryNext(event);
  if (status == NextStatus::TIMEOUT) {
    if (!end.has_value()) {
      end = async::AddDelay(std::chrono::steady_clock::now(), spin);
    }
    status = SpinUntil(*end, event);
  }
  policy.End();
  return status;
}

bool Poller::Next(std::optional<async::MonotonicTime>& spin_end, Event& event) {
  if (!options_.busy) {
    const NextStatus status =
        Spin(options_.spin, thread_spins_, spin_end, event);
    if (status != NextStatus::TIMEOUT) return status == NextStatus::GOT_EVENT;
  }
  event.event = nullptr;
  // Counted before the check: Post sets `any_posted_` before it reads this.
  num_waiting_.fetch_add(1, std::memory_order_seq_cst);
  bool got = true;
  if (!any_posted_.load(std::memory_order_seq_cst)) {
    if (options_.busy) {
      got = SpinUntil(async::kNever, event) == NextStatus::GOT_EVENT;
    } else {
      void* tag = nullptr;
      got = queue_->Next(&tag, &event.ok);
      event.event = static_cast<net::CompletionEvent*>(tag);
    }
  }
  num_waiting_.fetch_sub(1, std::memory_order_relaxed);
  return got;
}

bool Poller::RunPosted(bool brief_only) {
  absl::AnyInvocable<void() &&> closure;
  {
    async::MutexLock lock(&mutex_);
    if (posted_.empty() || (brief_only && !posted_.front().brief)) return false;
    closure = std::move(posted_.front().closure);
    posted_.pop_front();
    any_posted_.store(!posted_.empty(), std::memory_order_relaxed);
  }
  std::move(closure)();
  return true;
}

bool Poller::PollsInThisThread() const { return polling_for == this; }

bool Poller::PollsInEvent() const { return polling_in_event_of == this; }

bool Poller::TryBeginPolling() {
  int polling = num_polling_.load(std::memory_order_relaxed);
  while (polling < options_.num_threads) {
    if (num_polling_.compare_exchange_weak(polling, polling + 1,
                                           std::memory_order_seq_cst)) {
      return true;
    }
  }
  return false;
}

void Poller::EndPolling() {
  num_polling_.fetch_sub(1, std::memory_order_seq_cst);
  if (num_parked_.load(std::memory_order_seq_cst) == 0) return;
  async::MutexLock lock(&mutex_);
  unparked_.NotifyOne();
}

void Poller::Park() {
  async::MutexLock lock(&mutex_);
  num_parked_.fetch_add(1, std::memory_order_seq_cst);
  while (num_polling_.load(std::memory_order_seq_cst) >= options_.num_threads &&
         posted_.empty()) {
    unparked_.Wait(&mutex_);
  }
  num_parked_.fetch_sub(1, std::memory_order_relaxed);
}

void Poller::Post(absl::AnyInvocable<void() &&> closure, bool brief) {
  async::MutexLock lock(&mutex_);
  posted_.push_back({std::move(closure), brief});
  any_posted_.store(true, std::memory_order_seq_cst);
  if (num_yielding_ > 0) {
    resume_ = true;
    resumed_.NotifyAll();
    return;
  }
  if (num_parked_.load(std::memory_order_relaxed) > 0) {
    unparked_.NotifyOne();
    return;
  }
  // A polling thread may block after this, while another one waits.
  const bool may_sleep =
      polling_for != this || num_waiting_.load(std::memory_order_seq_cst) > 0;
  if (!may_sleep || waking_ || stopping_) return;
  waking_ = true;
  wake_alarm_.Set(queue_.get(), gpr_now(GPR_CLOCK_MONOTONIC),
                  static_cast<net::CompletionEvent*>(&wake_event_));
}

void Poller::OnWoken() {
  async::MutexLock lock(&mutex_);
  waking_ = false;
}

void Poller::Poll() {
  polling_for = this;
  Event next;
  std::optional<async::MonotonicTime> spin_end;
  for (int i = 0; i < kEventsPerTurn; ++i) {
    if (any_posted_.load(std::memory_order_relaxed) && RunPosted()) continue;
    if (streak_.load(std::memory_order_relaxed) >= kStreak) {
      Yield();
      continue;
    }
    if (!TryBeginPolling()) {
      // A thread that was blocked resumes beside the one that replaced it.
      if (i > 0) break;
      // The other one polls inside an event, and was replaced because the event
      // took long.
      Park();
      continue;
    }
    const bool open = Next(spin_end, next);
    EndPolling();
    if (!open) {
      while (RunPosted()) {
      }
      return;
    }
    if (next.event == nullptr) continue;
    if (next.event->spin_after()) spin_end.reset();
    if (may_yield_) {
      const void* const group = next.event->group();
      if (awaited_.load(std::memory_order_relaxed) == group) {
        streak_.fetch_add(1, std::memory_order_relaxed);
      } else if (last_awaited_.load(std::memory_order_relaxed) != group) {
        // An event of the same group may precede the wait: a request was sent.
        streak_.store(0, std::memory_order_relaxed);
      }
    }
    next.event->OnEvent(next.ok);
  }
  threads_.Post([this] { Poll(); });
}

void Poller::Yield() {
  async::MutexLock lock(&mutex_);
  if (num_polling_.load(std::memory_order_relaxed) > 0) {
    streak_.store(0, std::memory_order_relaxed);
    return;
  }
  // Earlier yielding threads may not have woken from a resume yet. Until they
  // have, no caller may poll in their place, since they would not be woken
  // again.
  if (++num_yielding_ == 1) resume_ = false;
  yielded_.store(true, std::memory_order_relaxed);
  while (!resume_ && !stopping_ && posted_.empty()) {
    polled_ = polling_;
    resumed_.WaitUntil(&mutex_, std::chrono::steady_clock::now() + kPatience);
    if (!polled_) break;
  }
  if (--num_yielding_ == 0) yielded_.store(false, std::memory_order_relaxed);
  streak_.store(0, std::memory_order_relaxed);
}

Poller::Polled Poller::PollFor(const void* group,
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
  if (was_pending) {
    std::optional<async::MonotonicTime> end;
    status = Spin(spin, caller_spins_, end, next);
  }
  if (was_pending && status == NextStatus::TIMEOUT) {
    void* tag = nullptr;
    status = queue_->AsyncNext(
        &tag, &next.ok,
        gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                     gpr_time_from_millis(kMaxPollMs, GPR_TIMESPAN)));
    next.event = static_cast<net::CompletionEvent*>(tag);
  }
  const bool got = status == NextStatus::GOT_EVENT;
  // The address of a group that is no longer awaited may have been reused.
  const bool mine = got && next.event->group() == group && pending();
  {
    async::MutexLock lock(&mutex_);
    polling_ = false;
    if (got && !mine) {
      PostEventLocked(next);
    }
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

void Poller::PostEventLocked(const Event& next) {
  posted_.push_front({[next] { next.event->OnEvent(next.ok); }});
  any_posted_.store(true, std::memory_order_relaxed);
}

Poller::Polled Poller::PollInEvent(const void* group,
                                   absl::FunctionRef<bool()> pending) {
  {
    async::MutexLock lock(&mutex_);
    // A caller may be polling.
    if (num_yielding_ > 0 || stopping_ || !TryBeginPolling()) {
      return Polled::kByThreads;
    }
  }
  const Poller* const outer = std::exchange(polling_in_event_of, this);
  const gpr_timespec end =
      gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                   gpr_time_from_millis(kMaxPollMs, GPR_TIMESPAN));
  Polled polled = Polled::kByThreads;
  net::CompletionEvent* mine = nullptr;
  Event next;
  std::optional<async::MonotonicTime> spin_end;
  while (pending()) {
    if (any_posted_.load(std::memory_order_relaxed)) {
      if (!RunPosted(/*brief_only=*/true)) break;
      continue;
    }
    NextStatus status = Spin(options_.spin, thread_spins_, spin_end, next);
    if (status == NextStatus::TIMEOUT) {
      // As in Next.
      num_waiting_.fetch_add(1, std::memory_order_seq_cst);
      const bool posted = any_posted_.load(std::memory_order_seq_cst);
      void* tag = nullptr;
      if (!posted) status = queue_->AsyncNext(&tag, &next.ok, end);
      num_waiting_.fetch_sub(1, std::memory_order_relaxed);
      if (posted) continue;
      next.event = static_cast<net::CompletionEvent*>(tag);
    }
    if (status != NextStatus::GOT_EVENT) {
      if (status == NextStatus::TIMEOUT) polled = Polled::kInVain;
      break;
    }
    if (next.event->spin_after()) spin_end.reset();
    if (next.event->group() == group) {
      mine = next.event;
      break;
    }
    if (!next.event->brief()) {
      async::MutexLock lock(&mutex_);
      PostEventLocked(next);
      break;
    }
    next.event->OnEvent(next.ok);
  }
  polling_in_event_of = outer;
  EndPolling();
  if (mine == nullptr) return polled;
  // It may block.
  mine->OnEvent(next.ok);
  return Polled::kHandled;
}

void Poller::Shutdown() {
  {
    async::MutexLock lock(&mutex_);
    if (std::exchange(stopping_, true)) return;
    resumed_.NotifyAll();
  }
  queue_->Shutdown();
  threads_.Shutdown();
  // Posted while the last thread ended.
  while (RunPosted()) {
  }
}

}  // namespace hawser::rpc
