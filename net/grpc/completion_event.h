// The tag of an operation on a completion queue.

#ifndef HAWSER_NET_GRPC_COMPLETION_EVENT_H_
#define HAWSER_NET_GRPC_COMPLETION_EVENT_H_

namespace hawser::net {

class CompletionEvent {
 public:
  // Runs on a polling thread of the queue, or on a thread that polls for an
  // event of the same group; if it is brief, also on one that polls for
  // another. May block inside a BlockingRegion.
  virtual void OnEvent(bool ok) = 0;

  // Events of one group are handled by the same thread that polls for them.
  virtual const void* group() const { return this; }

  // Whether OnEvent runs no functions of users, so that a thread which waits
  // for another event may run it.
  virtual bool brief() const { return false; }

  // Whether other events often follow soon, so that a thread spins for them.
  // After other events it continues to spin if it did so before.
  virtual bool spin_after() const { return true; }

 protected:
  ~CompletionEvent() = default;
};

}  // namespace hawser::net

#endif  // HAWSER_NET_GRPC_COMPLETION_EVENT_H_
