#include "rpc/grpc/poller.h"

#include <pthread.h>

#include <algorithm>
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

absl::Duration ProcessorTime(clockid_t clock) {
  timespec time{};
  if (clock_gettime(clock, &time) != 0) return absl::ZeroDuration();
  return absl::DurationFromTimespec(time);
}

}  // namespace

thread_local constinit Poller::PollingThread* Poller::this_thread_ = nullptr;

class Poller::InGrpc {
 public:
  InGrpc() { Pass(); }
  ~InGrpc() { Pass(); }
  InGrpc(const InGrpc&) = delete;
  InGrpc& operator=(const InGrpc&) = delete;

 private:
  static void Pass() {
    if (this_thread_ == nullptr) return;
    // Only this thread writes it.
    const uint64_t passages =
        this_thread_->passages.load(std::memory_order_relaxed);
    this_thread_->passages.store(passages + 1, std::memory_order_relaxed);
  }
};

class Poller::ThreadScope {
 public:
  explicit ThreadScope(Poller* poller) : poller_(*poller) {
    polling_for = poller;
    pthread_getcpuclockid(pthread_self(), &thread_.processor_clock);
    this_thread_ = &thread_;
    async::MutexLock lock(&poller_.mutex_);
    self_ = poller_.polling_threads_.insert(poller_.polling_threads_.end(),
                                            &thread_);
  }
  ~ThreadScope() {
    {
      async::MutexLock lock(&poller_.mutex_);
      poller_.polling_threads_.erase(self_);
    }
    this_thread_ = nullptr;
  }
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;

 private:
  Poller& poller_;
  PollingThread thread_;
  std::list<PollingThread*>::iterator self_;
};

Poller::Poller(std::unique_ptr<::grpc::CompletionQueue> queue,
               PollerOptions options)
    : queue_(std::move(queue)),
      options_(options),
      may_yield_(options.num_threads == 1 && !options.busy),
      threads_({.num_threads = options.num_threads,
                .max_threads = kMaxThreads,
                .name = "rpc-poll"}),
      relief_threads_({.num_threads = kMaxRelief,
                       .max_threads = kMaxThreads,
                       .name = "rpc-relief"}) {
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
    // Another thread may have said meanwhile what it expects.
    if (PollsInThisThread()) {
      end = std::max(end, poll_until_.load(std::memory_order_relaxed));
    }
  } while (status == NextStatus::TIMEOUT &&
           std::chrono::steady_clock::now() < end);
  return status;
}

Poller::NextStatus Poller::TryNext(Event& event) {
  void* tag = nullptr;
  const InGrpc in_grpc;
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
      const InGrpc in_grpc;
      got = queue_->Next(&tag, &event.ok);
      event.event = static_cast<net::CompletionEvent*>(tag);
    }
  }
  num_waiting_.fetch_sub(1, std::memory_order_relaxed);
  return got;
}

void Poller::ExpectEventAfter(absl::Duration time) {
  if (options_.spin <= absl::ZeroDuration()) return;
  const async::MonotonicTime until =
      async::AddDelay(std::chrono::steady_clock::now(), options_.spin + time);
  // Of two concurrent calls, one may be lost.
  if (poll_until_.load(std::memory_order_relaxed) >= until) return;
  poll_until_.store(until, std::memory_order_relaxed);
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
  while (polling < max_polling()) {
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
  while (num_polling_.load(std::memory_order_seq_cst) >= max_polling() &&
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
  if (!PollTurn(/*relief=*/false)) return;
  threads_.Post([this] { Poll(); });
}

void Poller::PollAsRelief() {
  while (num_relief_.load(std::memory_order_relaxed) > 0 &&
         PollTurn(/*relief=*/true)) {
  }
  num_relieving_.fetch_sub(1, std::memory_order_relaxed);
  // It may have been woken from Park in place of another.
  async::MutexLock lock(&mutex_);
  unparked_.NotifyOne();
}

bool Poller::PollTurn(bool relief) {
  const ThreadScope scope(this);
  Event next;
  std::optional<async::MonotonicTime> spin_end;
  for (int i = 0; i < kEventsPerTurn; ++i) {
    if (relief && num_relief_.load(std::memory_order_relaxed) == 0) break;
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
      return false;
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
  return true;
}

bool Poller::IsCaptured(PollingThread& thread, absl::Duration since) {
  const uint64_t passages = thread.passages.load(std::memory_order_relaxed);
  const bool stayed = passages % 2 == 1 &&
                      passages == std::exchange(thread.seen_passages, passages);
  // A thread that waits for an event has stayed too, but used no time.
  const absl::Duration time = ProcessorTime(thread.processor_clock);
  const absl::Duration used =
      time - std::exchange(thread.seen_processor_time, time);
  return stayed && used > since / 10;
}

int Poller::Relieve(async::MonotonicTime now) {
  const absl::Duration since = async::TimeBetween(last_relieve_, now);
  int wanted = num_relief_.load(std::memory_order_relaxed);
  if (since < kReliefInterval) return wanted;
  last_relieve_ = now;
  int captured = 0;
  {
    async::MutexLock lock(&mutex_);
    if (stopping_) return 0;
    for (PollingThread* thread : polling_threads_) {
      if (IsCaptured(*thread, since)) ++captured;
    }
    // A caller polls for a few milliseconds at most.
    const bool same_poll = std::exchange(seen_polls_, num_polls_) == num_polls_;
    if (polling_ && same_poll) {
      resume_ = true;
      resumed_.NotifyAll();
    }
  }
  if (captured > 0) {
    wanted = std::max(wanted, std::min(captured, kMaxRelief));
    relief_end_ = async::AddDelay(now, kReliefTime);
  } else if (now >= relief_end_) {
    wanted = 0;
  }
  num_relief_.store(wanted, std::memory_order_relaxed);
  while (num_relieving_.load(std::memory_order_relaxed) < wanted) {
    num_relieving_.fetch_add(1, std::memory_order_relaxed);
    relief_threads_.Post([this] { PollAsRelief(); });
  }
  return wanted;
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
    ++num_polls_;
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
      if (!posted) {
        const InGrpc in_grpc;
        status = queue_->AsyncNext(&tag, &next.ok, end);
      }
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
  relief_threads_.Shutdown();
  // Posted while the last thread ended.
  while (RunPosted()) {
  }
}

}  // namespace hawser::rpc
