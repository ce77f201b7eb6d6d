#ifndef HAWSER_RREF_ACCESS_ASYNC_SHARED_MUTEX_H_
#define HAWSER_RREF_ACCESS_ASYNC_SHARED_MUTEX_H_

#include <memory>

#include "async/future.h"

namespace hawser::rref {

// A reader-writer lock that is acquired through futures and does not block
// threads. It grants requests in their order: to any number of shared holders
// or to one exclusive holder.
//
// A message that is sent directly from the memory of a value holds the lock
// shared. An optimizer that updates the value in place holds it exclusively.
// Any thread may release a holder. Thread-safe. An uncontended acquisition
// locks one mutex, and so does the release.
class AsyncSharedMutex {
 public:
  // Holds the lock until the last copy is destroyed. May outlive the mutex.
  using Holder = std::shared_ptr<void>;

  AsyncSharedMutex();
  AsyncSharedMutex(const AsyncSharedMutex&) = delete;
  AsyncSharedMutex& operator=(const AsyncSharedMutex&) = delete;

  // The futures complete in the thread that requests or in the one that
  // releases the lock, with no mutex held. A holder whose future was dropped is
  // released at once.
  async::Future<Holder> AcquireShared();
  async::Future<Holder> AcquireExclusive();

 private:
  class State;
  const std::shared_ptr<State> state_;
};

}  // namespace hawser::rref

#endif  // HAWSER_RREF_ACCESS_ASYNC_SHARED_MUTEX_H_
