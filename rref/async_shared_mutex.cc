#include "rref/async_shared_mutex.h"

#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "async/mutex.h"

namespace hawser::rref {

class AsyncSharedMutex::State : public std::enable_shared_from_this<State> {
 public:
  async::Future<Holder> Acquire(bool exclusive) {
    async::Promise<Holder> promise;
    async::Future<Holder> future = promise.future();
    {
      async::MutexLock lock(&mutex_);
      waiting_.push_back({exclusive, std::move(promise)});
    }
    Grant();
    return future;
  }

 private:
  struct Waiter {
    bool exclusive;
    async::Promise<Holder> promise;
  };

  // Grants the lock to the waiters at the head of the queue that may hold it
  // now.
  void Grant() {
    std::vector<Waiter> granted;
    {
      async::MutexLock lock(&mutex_);
      while (!waiting_.empty() && !exclusive_held_) {
        const bool exclusive = waiting_.front().exclusive;
        if (exclusive && shared_holders_ > 0) break;
        exclusive_held_ = exclusive;
        shared_holders_ += exclusive ? 0 : 1;
        granted.push_back(std::move(waiting_.front()));
        waiting_.pop_front();
      }
    }
    for (Waiter& waiter : granted) {
      waiter.promise.Set(MakeHolder(waiter.exclusive));
    }
  }

  Holder MakeHolder(bool exclusive) {
    return Holder(this, [self = shared_from_this(), exclusive](void*) {
      self->LetGo(exclusive);
    });
  }

  void LetGo(bool exclusive) {
    {
      async::MutexLock lock(&mutex_);
      if (exclusive) {
        exclusive_held_ = false;
      } else {
        --shared_holders_;
      }
    }
    Grant();
  }

  async::Mutex mutex_;
  bool exclusive_held_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t shared_holders_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<Waiter> waiting_ ABSL_GUARDED_BY(mutex_);
};

AsyncSharedMutex::AsyncSharedMutex() : state_(std::make_shared<State>()) {}

async::Future<AsyncSharedMutex::Holder> AsyncSharedMutex::AcquireShared() {
  return state_->Acquire(/*exclusive=*/false);
}

async::Future<AsyncSharedMutex::Holder> AsyncSharedMutex::AcquireExclusive() {
  return state_->Acquire(/*exclusive=*/true);
}

}  // namespace hawser::rref
