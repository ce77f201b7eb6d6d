#include "async/thread_pool.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "async/check.h"

namespace hawser::async {
namespace {

// A thread beyond `num_threads` exits when it has been idle for this long.
// Closures that block often need it again: to start a thread takes 50 to 100
// us, to wake one less than half of it.
constexpr std::chrono::seconds kSpareTime{1};

// The pool that owns this thread, or null.
thread_local constinit const ThreadPool* t_pool = nullptr;

}  // namespace

// State of one thread, on its stack.
struct ThreadPool::IdleThread {
  // Shared with those that notify, since the thread may exit meanwhile.
  const std::shared_ptr<CondVar> woken = std::make_shared<CondVar>();
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
  std::shared_ptr<CondVar> woken;
  {
    // A rejected task is destroyed after the lock is released.
    MutexLock lock(&mutex_);
    if (stopping_ && t_pool != this) return;
    queue_.push_back(std::move(task));
    woken = ActivateLocked();
  }
  if (woken != nullptr) woken->NotifyOne();
}

void ThreadPool::Shutdown() {
  HAWSER_CHECK(t_pool != this)
      << "a thread pool must not be shut down by one of its own threads";
  BlockingRegion region;
  std::thread last;
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    for (IdleThread* thread : idle_) thread->woken->NotifyOne();
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
  std::shared_ptr<CondVar> woken;
  {
    MutexLock lock(&mutex_);
    ++num_blocked_;
    --num_active_;
    woken = ActivateLocked();
  }
  if (woken != nullptr) woken->NotifyOne();
}

void ThreadPool::OnUnblock() {
  MutexLock lock(&mutex_);
  --num_blocked_;
  ++num_active_;
}

std::shared_ptr<CondVar> ThreadPool::ActivateLocked() {
  if (queue_.empty() || num_active_ >= options_.num_threads) return nullptr;
  if (!idle_.empty()) {
    IdleThread* thread = idle_.back();
    idle_.pop_back();
    thread->activated = true;
    ++num_active_;
    return thread->woken;
  }
  if (static_cast<int>(threads_.size()) < options_.max_threads) {
    ++num_active_;
    auto self = threads_.emplace(threads_.end());
    *self = std::thread([this, self] { Run(self); });
  }
  return nullptr;
}

void ThreadPool::Run(ThreadList::iterator self) {
  t_pool = this;
  BlockingObserver::SetForThisThread(this);
  pthread_setname_np(pthread_self(), options_.name.substr(0, 15).c_str());

  std::thread before;
  IdleThread idle;
  {
    MutexLock lock(&mutex_);
    do {
      RunQueuedLocked();
      --num_active_;
    } while (IdleLocked(idle));
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

bool ThreadPool::IdleLocked(IdleThread& self) {
  if (stopping_) return false;
  self.activated = false;
  idle_.push_back(&self);
  auto deadline = std::chrono::steady_clock::now() + kSpareTime;
  bool spare = false;
  while (!self.activated && !stopping_ && !spare) {
    if (self.woken->WaitUntil(&mutex_, deadline)) continue;
    spare = static_cast<int>(idle_.size()) > options_.num_threads;
    deadline = std::chrono::steady_clock::time_point::max();
  }
  if (self.activated) return true;
  idle_.erase(std::find(idle_.begin(), idle_.end(), &self));
  return false;
}

}  // namespace hawser::async
