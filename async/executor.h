#ifndef HAWSER_ASYNC_EXECUTOR_H_
#define HAWSER_ASYNC_EXECUTOR_H_

#include "absl/functional/any_invocable.h"

namespace hawser::async {

// Runs closures. Thread-safe.
class Executor {
 public:
  virtual ~Executor() = default;

  // Runs `closure` once, under the caller's TaskContext (implementations store
  // it as an async::Task). If the executor is shut down, the closure is
  // destroyed without running, and a Promise in it completes with kCancelled.
  virtual void Post(absl::AnyInvocable<void() &&> closure) = 0;
};

// Runs each closure inside Post, in the calling thread.
class InlineExecutor final : public Executor {
 public:
  void Post(absl::AnyInvocable<void() &&> closure) override;
};

}  // namespace hawser::async

#endif  // HAWSER_ASYNC_EXECUTOR_H_
