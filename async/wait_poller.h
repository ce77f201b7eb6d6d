// Events that a thread polls for while it waits for a future.

#ifndef HAWSER_ASYNC_WAIT_POLLER_H_
#define HAWSER_ASYNC_WAIT_POLLER_H_

#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"

namespace hawser::async {

// An operation, such as a remote call, whose end a waiting thread can bring
// about itself. Otherwise another thread, which receives the event, has to wake
// the waiting one, which takes longer than many operations.
//
// A future has the poller of the operation that it depends on
// (Future::SetWaitPoller). Thread-safe.
class WaitPoller {
 public:
  virtual ~WaitPoller() = default;

  // For a thread that waits for nothing but a consequence of the operation:
  // polls for its end and handles it in this thread. Returns when it has ended,
  // when `done` returns true, or after a time that the operation chooses. Must
  // not be called with a lock held, since callbacks may run.
  virtual void PollUntil(absl::FunctionRef<bool()> done) = 0;
};

// Returns a poller of operations that all have to end, null if there are none.
// Polls for them in their order; null entries are left out.
std::shared_ptr<WaitPoller> PollerOfAll(
    std::vector<std::shared_ptr<WaitPoller>> pollers);

}  // namespace hawser::async

#endif  // HAWSER_ASYNC_WAIT_POLLER_H_
