#ifndef HAWSER_ASYNC_TASK_H_
#define HAWSER_ASYNC_TASK_H_

#include <utility>

#include "absl/functional/any_invocable.h"
#include "async/exceptions.h"
#include "async/task_local.h"

namespace hawser::async {

// A closure with the TaskContext of the thread that created it. Executors and
// clocks store closures in this form.
class Task {
 public:
  Task() = default;
  explicit Task(absl::AnyInvocable<void() &&> closure)
      : context_(TaskContext::Capture()), closure_(std::move(closure)) {}

  // Runs and destroys the closure, at most once. Exceptions are caught and
  // logged (async/exceptions.h), since no caller waits for the result.
  void Run() && {
    TaskContext::Scope scope(std::move(context_));
    absl::AnyInvocable<void()&&> closure = std::move(closure_);
    LogExceptions("a closure", std::move(closure));
  }

 private:
  TaskContext context_;
  absl::AnyInvocable<void() &&> closure_;
};

}  // namespace hawser::async

#endif  // HAWSER_ASYNC_TASK_H_
