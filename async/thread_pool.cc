#include "async/thread_pool.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "async/check.h"

namespace hawser::async {
namespace {

// The pool that owns this thread, or null.
thread_local constinit const ThreadPool* t_pool = nullptr;

}  // namespace

// State of one idle thread, on its stack.
struct ThreadPool::IdleThread {
  CondVar woken;
  // Already counted in `num_active_`.
  bool activated = false;
};

ThreadPool::ThreadPool(ThreadPoolOptions options)
    : options_(std::move(options)) {
  HAWSER_CHECK(options_.num_threads >= 1 &&
               options_.max_threads >= options_.num_threads)
      << options_.num_threads << " threads, at most " << options_.max_threads;
}

ThreadPool::~ThreadPool() { Shutdown(); }

void ThreadPool::Post(absl::AnyInvocable<void() &&> closure) {
  Task task(std::move(closure));
  // The caller destroys a rejected task after releasing the lock.
  MutexLock lock(&mutex_);
  if (stopping_ && t_pool != this) return;
  queue_.push_back(std::move(task));
  ActivateLocked();
}

void ThreadPool::Shutdown() {
  HAWSER_CHECK(t_pool != this)
      << "a thread pool must not be shut down by one of its own threads";
  BlockingRegion region;
  std::thread last;
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    for (IdleThread* thread : idle_) thread->woken.NotifyOne();
    while (!threads_.empty()) all_ended_.Wait(&mutex_);
    last = std::move(ended_);
  }
  if (last.joinable()) last.join();
}

ThreadPoolStats ThreadPool::stats() const {
  MutexLock lock(&mutex_);
  return {.num_threads = static_cast<int>(threads_.size()),
          .num_idle = static_cast<int>(idle_.size()),
          .num_blocked = num_blocked_,
          .num_queued = static_cast<int>(queue_.size())};
}

bool ThreadPool::RunsThisThread() const { return t_pool == this; }

bool ThreadPool::IsNearlyExhausted() {
  if (t_pool == nullptr) return false;
  const ThreadPoolOptions& options = t_pool->options_;
  const int limit = options.max_threads - options.num_threads;
  return limit > 0 &&
         t_pool->num_blocked_.load(std::memory_order_relaxed) >= limit;
}

void ThreadPool::OnBlock() {
  MutexLock lock(&mutex_);
  ++num_blocked_;
  --num_active_;
  ActivateLocked();
}

void ThreadPool::OnUnblock() {
  MutexLock lock(&mutex_);
  --num_blocked_;
  ++num_active_;
}

void ThreadPool::ActivateLocked() {
  if (queue_.empty() || num_active_ >= options_.num_threads) return;
  if (!idle_.empty()) {
    IdleThread* thread = idle_.back();
    idle_.pop_back();
    thread->activated = true;
    ++num_active_;
    // Under the lock, because the thread may end and destroy its condition
    // variable.
    thread->woken.NotifyOne();
  } else if (static_cast<int>(threads_.size()) < options_.max_threads) {
    ++num_active_;
    auto self = threads_.emplace(threads_.end());
    *self = std::thread([this, self] { Run(self); });
  }
}

void ThreadPool::Run(ThreadList::iterator self) {
  t_pool = this;
  BlockingObserver::SetForThisThread(this);
  pthread_setname_np(pthread_self(), options_.name.substr(0, 15).c_str());

  std::thread before;
  {
    MutexLock lock(&mutex_);
    do {
      RunQueuedLocked();
      --num_active_;
    } while (IdleLocked());
    before = std::exchange(ended_, std::move(*self));
    threads_.erase(self);
    // Under the lock, because the pool may be destroyed after it.
    if (threads_.empty()) all_ended_.NotifyAll();
  }
  if (before.joinable()) before.join();
}

void ThreadPool::RunQueuedLocked() {
  while (!queue_.empty() && num_active_ <= options_.num_threads) {
    Task task = std::move(queue_.front());
    queue_.pop_front();
    mutex_.Unlock();
    std::move(task).Run();
    mutex_.Lock();
  }
}

bool ThreadPool::IdleLocked() {
  if (stopping_ || static_cast<int>(idle_.size()) >= options_.num_threads) {
    return false;
  }
  IdleThread self;
  idle_.push_back(&self);
  while (!self.activated && !stopping_) self.woken.Wait(&mutex_);
  if (self.activated) return true;
  idle_.erase(std::find(idle_.begin(), idle_.end(), &self));
  return false;
}

}  // namespace hawser::async
