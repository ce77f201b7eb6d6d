// Threads that run one at a time, in a deterministic order.

#ifndef HAWSER_RPC_TESTING_DETERMINISTIC_THREADS_H_
#define HAWSER_RPC_TESTING_DETERMINISTIC_THREADS_H_

#include <cstddef>
#include <functional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "async/mutex.h"

namespace hawser::rpc {

// For deterministic tests of code that waits for other parties: each task runs
// until it yields or ends, then the next one runs.
class DeterministicThreads {
 public:
  // Runs all `tasks`, each in its own thread, starting with the first.
  void Run(std::vector<std::function<void()>> tasks) {
    size_t count = 0;
    {
      async::MutexLock lock(&mutex_);
      runs_.assign(tasks.size(), true);
      turn_ = 0;
      num_yields_ = 0;
      count = tasks.size();
    }
    std::vector<std::thread> threads;
    for (size_t i = 0; i < count; ++i) {
      threads.emplace_back([this, i, &task = tasks[i]] {
        AwaitTurn(i);
        current_ = i;
        task();
        async::MutexLock lock(&mutex_);
        runs_[i] = false;
        PassOnLocked(i);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  // Called inside a task: lets the other tasks run. Returns false if there are
  // no others, or if all tasks only yield.
  bool Yield() {
    const size_t self = current_;
    {
      async::MutexLock lock(&mutex_);
      if (++num_yields_ > kMaxYields) return false;
      PassOnLocked(self);
      if (turn_ == self) return false;
    }
    AwaitTurn(self);
    return true;
  }

 private:
  static constexpr int kMaxYields = 10000;

  void AwaitTurn(size_t self) {
    async::MutexLock lock(&mutex_);
    while (turn_ != self) changed_.Wait(&mutex_);
  }

  void PassOnLocked(size_t self) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (size_t i = 1; i <= runs_.size(); ++i) {
      const size_t next = (self + i) % runs_.size();
      if (!runs_[next]) continue;
      turn_ = next;
      break;
    }
    changed_.NotifyAll();
  }

  static inline thread_local size_t current_ = 0;

  async::Mutex mutex_;
  async::CondVar changed_;
  std::vector<bool> runs_ ABSL_GUARDED_BY(mutex_);
  size_t turn_ ABSL_GUARDED_BY(mutex_) = 0;
  int num_yields_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_TESTING_DETERMINISTIC_THREADS_H_
