#ifndef HAWSER_ASYNC_TESTING_MANUAL_EXECUTOR_H_
#define HAWSER_ASYNC_TESTING_MANUAL_EXECUTOR_H_

#include <cstddef>
#include <deque>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "async/executor.h"
#include "async/mutex.h"
#include "async/task.h"

namespace hawser::async {

// An executor whose closures a test runs explicitly, in the test's thread.
// Closures still queued when it is destroyed do not run. Thread-safe.
class ManualExecutor final : public Executor {
 public:
  ManualExecutor();
  ~ManualExecutor() override;

  void Post(absl::AnyInvocable<void() &&> closure) override;

  // Runs the oldest queued closure; returns false if the queue is empty.
  bool RunOne();
  // Runs closures, including those that they post, until the queue is empty.
  // Returns the number run.
  size_t RunAll();

  size_t num_queued() const;

 private:
  mutable Mutex mutex_;
  std::deque<Task> queue_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::async

#endif  // HAWSER_ASYNC_TESTING_MANUAL_EXECUTOR_H_
