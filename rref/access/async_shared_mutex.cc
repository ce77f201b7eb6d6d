#include "rref/access/async_shared_mutex.h"

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
    {
      async::MutexLock lock(&mutex_);
      if (!waiting_.empty() || !MayHold(exclusive)) {
        return waiting_.emplace_back(exclusive).promise.future();
      }
      Hold(exclusive);
    }
    return async::MakeReadyFuture<Holder>(MakeHolder(exclusive));
  }

 private:
  struct Waiter {
    explicit Waiter(bool exclusive_access) : exclusive(exclusive_access) {}

    bool exclusive;
    async::Promise<Holder> promise;
  };

  bool MayHold(bool exclusive) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !exclusive_held_ && (!exclusive || shared_holders_ == 0);
  }
  void Hold(bool exclusive) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    exclusive_held_ = exclusive;
    shared_holders_ += exclusive ? 0 : 1;
  }

  Holder MakeHolder(bool exclusive) {
    return Holder(this, [self = shared_from_this(), exclusive](void*) {
      self->LetGo(exclusive);
    });
  }

  // Releases the lock and grants it to the waiters at the head of the queue
  // that may hold it now.
  void LetGo(bool exclusive) {
    std::vector<Waiter> granted;
    {
      async::MutexLock lock(&mutex_);
      if (exclusive) {
        exclusive_held_ = false;
      } else {
        --shared_holders_;
      }
      while (!waiting_.empty() && MayHold(waiting_.front().exclusive)) {
        Hold(waiting_.front().exclusive);
        granted.push_back(std::move(waiting_.front()));
        waiting_.pop_front();
      }
    }
    for (Waiter& waiter : granted) {
      waiter.promise.Set(MakeHolder(waiter.exclusive));
    }
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
