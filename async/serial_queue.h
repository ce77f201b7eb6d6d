#ifndef HAWSER_ASYNC_SERIAL_QUEUE_H_
#define HAWSER_ASYNC_SERIAL_QUEUE_H_

#include <memory>

#include "absl/functional/any_invocable.h"
#include "async/executor.h"

namespace hawser::async {

// Runs closures on another executor, one at a time, in the order posted: what
// they share needs no lock.
//
// Closures posted before the queue is destroyed still run. If `executor` is
// shut down, what is queued is destroyed unrun. Unbounded: whoever posts
// limits what it has in flight.
class SerialQueue final : public Executor {
 public:
  // `executor` outlives the queue and its closures.
  explicit SerialQueue(Executor* executor);
  ~SerialQueue() override;

  void Post(absl::AnyInvocable<void() &&> closure) override;

 private:
  class State;
  const std::shared_ptr<State> state_;
};

}  // namespace hawser::async

#endif  // HAWSER_ASYNC_SERIAL_QUEUE_H_
