#include "store/watch_threads.h"

#include <chrono>
#include <utility>

#include "absl/status/status.h"

namespace hawser::store::internal {
namespace {

absl::Status Ended() {
  return absl::CancelledError("the watch ended with its store");
}

}  // namespace

void WatchThreads::Watch::PauseUntil(async::MonotonicTime deadline) {
  async::MutexLock lock(&mutex_);
  while (!cancelled() && std::chrono::steady_clock::now() < deadline) {
    changed_.WaitUntil(&mutex_, deadline);
  }
}

void WatchThreads::Watch::Cancel() {
  async::MutexLock lock(&mutex_);
  if (cancelled_.exchange(true)) return;
  changed_.NotifyAll();
  if (interrupt_ != nullptr) interrupt_();
}

WatchThreads::Interruptible::Interruptible(Watch* watch,
                                           absl::AnyInvocable<void()> interrupt)
    : watch_(watch) {
  async::MutexLock lock(&watch_->mutex_);
  if (watch_->cancelled()) {
    interrupt();
  } else {
    watch_->interrupt_ = std::move(interrupt);
  }
}

WatchThreads::Interruptible::~Interruptible() {
  async::MutexLock lock(&watch_->mutex_);
  watch_->interrupt_ = nullptr;
}

async::Future<WatchThreads::Values> WatchThreads::Start(Body body) {
  Reap();
  auto watch = std::make_shared<Watch>();
  async::Promise<Values> promise;
  async::Future<Values> future = promise.future();
  promise.OnCancel([weak = std::weak_ptr<Watch>(watch)] {
    if (const auto cancelled = weak.lock(); cancelled != nullptr) {
      cancelled->Cancel();
    }
  });
  async::MutexLock lock(&mutex_);
  if (stopped_) return async::MakeReadyFuture<Values>(Ended());
  const auto running = running_.insert(running_.end(), Running{watch, {}});
  running->thread = std::thread([this, running, watch, body = std::move(body),
                                 promise = std::move(promise)]() mutable {
    absl::StatusOr<Values> values = body(*watch);
    if (!values.ok() && watch->cancelled()) values = Ended();
    promise.Set(std::move(values));
    async::MutexLock end_lock(&mutex_);
    finished_.push_back(std::move(running->thread));
    running_.erase(running);
    if (running_.empty()) ended_.NotifyAll();
  });
  return future;
}

void WatchThreads::Stop() {
  std::vector<std::shared_ptr<Watch>> watches;
  {
    async::MutexLock lock(&mutex_);
    stopped_ = true;
    for (const Running& running : running_) watches.push_back(running.watch);
  }
  for (const std::shared_ptr<Watch>& watch : watches) watch->Cancel();
  {
    async::MutexLock lock(&mutex_);
    while (!running_.empty()) ended_.Wait(&mutex_);
  }
  Reap();
}

void WatchThreads::Reap() {
  std::vector<std::thread> finished;
  {
    async::MutexLock lock(&mutex_);
    finished.swap(finished_);
  }
  for (std::thread& thread : finished) thread.join();
}

}  // namespace hawser::store::internal
