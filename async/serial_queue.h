#ifndef HAWSER_ASYNC_SERIAL_QUEUE_H_
#define HAWSER_ASYNC_SERIAL_QUEUE_H_

#include <memory>

#include "absl/functional/any_invocable.h"
#include "async/executor.h"

namespace hawser::async {

// Runs closures on another executor, one at a time, in the order posted, so
// that data shared by them needs no lock.
//
// Closures posted before the queue is destroyed still run. If `executor` is
// shut down, queued closures are destroyed without running. The queue is
// unbounded: callers limit their closures in flight.
class SerialQueue final : public Executor {
 public:
  // `executor` must outlive the queue and its closures.
  explicit SerialQueue(Executor* executor);
  ~SerialQueue() override;

  void Post(absl::AnyInvocable<void() &&> closure) override;

 private:
  class State;
  const std::shared_ptr<State> state_;
};

}  // namespace hawser::async

#endif  // HAWSER_ASYNC_SERIAL_QUEUE_H_
