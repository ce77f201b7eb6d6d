#ifndef HAWSER_ASYNC_TASK_H_
#define HAWSER_ASYNC_TASK_H_

#include <utility>

#include "absl/functional/any_invocable.h"
#include "async/task_local.h"
#include "async/thrown.h"

namespace hawser::async {

// A closure and the TaskContext of the thread that made it: what an Executor
// or a Clock keeps until it runs the closure.
class Task {
 public:
  Task() = default;
  explicit Task(absl::AnyInvocable<void() &&> closure)
      : context_(TaskContext::Capture()), closure_(std::move(closure)) {}

  // Runs and destroys the closure. At most once. What it throws ends here
  // (async/thrown.h): nobody waits for it.
  void Run() && {
    TaskContext::Scope scope(std::move(context_));
    absl::AnyInvocable<void()&&> closure = std::move(closure_);
    EndThrown("a closure", std::move(closure));
  }

 private:
  TaskContext context_;
  absl::AnyInvocable<void() &&> closure_;
};

}  // namespace hawser::async

#endif  // HAWSER_ASYNC_TASK_H_
