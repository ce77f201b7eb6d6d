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

// An executor whose closures run when a test says so, in the test's thread.
// What is queued when it is destroyed is destroyed unrun. Thread-safe.
class ManualExecutor final : public Executor {
 public:
  ManualExecutor();
  ~ManualExecutor() override;

  void Post(absl::AnyInvocable<void() &&> closure) override;

  // Runs the first closure queued; false if there is none.
  bool RunOne();
  // Runs closures, also those they post, until there are none; returns how
  // many ran.
  size_t RunAll();

  size_t num_queued() const;

 private:
  mutable Mutex mutex_;
  std::deque<Task> queue_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::async

#endif  // HAWSER_ASYNC_TESTING_MANUAL_EXECUTOR_H_
