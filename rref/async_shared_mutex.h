#ifndef HAWSER_RREF_ASYNC_SHARED_MUTEX_H_
#define HAWSER_RREF_ASYNC_SHARED_MUTEX_H_

#include <memory>

#include "async/future.h"

namespace hawser::rref {

// Keeps writers of a value away from its readers without blocking threads: any
// number of shared holders, or one exclusive one, in the order of asking.
//
// A shared holder is a message that is being sent straight from the value's
// memory; the exclusive one is an optimizer that updates it in place. A holder
// may let go in any thread. Thread-safe.
class AsyncSharedMutex {
 public:
  // Holds the lock until the last copy is gone; may outlive the mutex.
  using Holder = std::shared_ptr<void>;

  AsyncSharedMutex();
  AsyncSharedMutex(const AsyncSharedMutex&) = delete;
  AsyncSharedMutex& operator=(const AsyncSharedMutex&) = delete;

  // The futures complete in the thread that asks or in the one that lets go of
  // the lock, no mutex held. A holder whose future was dropped lets go at once.
  async::Future<Holder> AcquireShared();
  async::Future<Holder> AcquireExclusive();

 private:
  class State;
  const std::shared_ptr<State> state_;
};

}  // namespace hawser::rref

#endif  // HAWSER_RREF_ASYNC_SHARED_MUTEX_H_
