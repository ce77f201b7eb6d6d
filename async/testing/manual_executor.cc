#include "async/testing/manual_executor.h"

#include <utility>

namespace hawser::async {

ManualExecutor::ManualExecutor() = default;
ManualExecutor::~ManualExecutor() = default;

void ManualExecutor::Post(absl::AnyInvocable<void() &&> closure) {
  Task task(std::move(closure));
  MutexLock lock(&mutex_);
  queue_.push_back(std::move(task));
}

bool ManualExecutor::RunOne() {
  Task task;
  {
    MutexLock lock(&mutex_);
    if (queue_.empty()) return false;
    task = std::move(queue_.front());
    queue_.pop_front();
  }
  std::move(task).Run();
  return true;
}

size_t ManualExecutor::RunAll() {
  size_t count = 0;
  while (RunOne()) ++count;
  return count;
}

size_t ManualExecutor::num_queued() const {
  MutexLock lock(&mutex_);
  return queue_.size();
}

}  // namespace hawser::async
