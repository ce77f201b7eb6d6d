#include "rpc/grpc/poller.h"

#include <chrono>
#include <utility>

namespace hawser::rpc {
namespace {

// As many threads may be blocked in events before polling stops.
constexpr int kMaxThreads = 256;
// Then a thread looks whether there are too many of them.
constexpr int kEventsPerTurn = 256;

// Awaited events in a row before a thread steps aside.
constexpr int kStreak = 8;
// How long what comes may wait after that if nobody polls any more.
constexpr std::chrono::microseconds kPatience{1000};
// How long a thread polls for its event; it is not in a BlockingRegion.
constexpr int kMaxPollMs = 5;

}  // namespace

Poller::Poller(std::unique_ptr<::grpc::CompletionQueue> queue, int num_threads,
               bool busy)
    : queue_(std::move(queue)),
      busy_(busy),
      may_step_aside_(num_threads == 1 && !busy),
      threads_({.num_threads = num_threads,
                .max_threads = kMaxThreads,
                .name = "rpc-poll"}) {
  // The pool runs `num_threads` of them; the others wait for one to block.
  for (int i = 0; i < kMaxThreads; ++i) threads_.Post([this] { Poll(); });
}

Poller::~Poller() { Shutdown(); }

bool Poller::Next(Event& event) {
  void* tag = nullptr;
  bool got = false;
  if (!busy_) {
    got = queue_->Next(&tag, &event.ok);
  } else {
    ::grpc::CompletionQueue::NextStatus status;
    do {
      status =
          queue_->AsyncNext(&tag, &event.ok, gpr_time_0(GPR_CLOCK_MONOTONIC));
    } while (status == ::grpc::CompletionQueue::TIMEOUT);
    got = status == ::grpc::CompletionQueue::GOT_EVENT;
  }
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
    if (streak_.load(std::memory_order_relaxed) >= kStreak) StepAside();
    if (may_step_aside_ && TakeHandedOver(next)) {
      next.event->OnEvent(next.ok);
      continue;
    }
    if (!Next(next)) return;
    if (may_step_aside_) {
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

void Poller::StepAside() {
  async::MutexLock lock(&mutex_);
  ++num_aside_;
  recall_ = false;
  while (!recall_ && !stopping_ && handed_over_.empty()) {
    polled_ = polling_;
    recalled_.WaitUntil(&mutex_, std::chrono::steady_clock::now() + kPatience);
    if (!polled_) break;
  }
  --num_aside_;
  streak_.store(0, std::memory_order_relaxed);
}

Poller::Polled Poller::PollFor(const CompletionEvent* event,
                               absl::FunctionRef<bool()> pending) {
  {
    async::MutexLock lock(&mutex_);
    if (num_aside_ == 0 || polling_ || recall_ || stopping_) {
      return Polled::kByThreads;
    }
    polling_ = polled_ = true;
  }
  void* tag = nullptr;
  Event next;
  ::grpc::CompletionQueue::NextStatus status = ::grpc::CompletionQueue::TIMEOUT;
  const bool was_pending = pending();
  if (was_pending) {
    status = queue_->AsyncNext(
        &tag, &next.ok,
        gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                     gpr_time_from_millis(kMaxPollMs, GPR_TIMESPAN)));
  }
  const bool got = status == ::grpc::CompletionQueue::GOT_EVENT;
  next.event = static_cast<CompletionEvent*>(tag);
  // Events that are no more pending have left their place to others.
  const bool mine = got && next.event == event && pending();
  {
    async::MutexLock lock(&mutex_);
    polling_ = false;
    if (got && !mine) handed_over_.push_back(next);
    if (!mine) {
      recall_ = true;
      recalled_.NotifyAll();
    }
  }
  if (mine) {
    next.event->OnEvent(next.ok);
    return Polled::kHandled;
  }
  return was_pending && status == ::grpc::CompletionQueue::TIMEOUT
             ? Polled::kInVain
             : Polled::kByThreads;
}

void Poller::Shutdown() {
  {
    async::MutexLock lock(&mutex_);
    if (std::exchange(stopping_, true)) return;
    recalled_.NotifyAll();
  }
  queue_->Shutdown();
  threads_.Shutdown();
}

}  // namespace hawser::rpc
