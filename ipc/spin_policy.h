// Policy of threads that wait for an event of another thread or process.

#ifndef HAWSER_IPC_SPIN_POLICY_H_
#define HAWSER_IPC_SPIN_POLICY_H_

#include <atomic>

namespace hawser::ipc {

// A waiting thread spins for a bounded time before it sleeps, which saves its
// wake-up if the event arrives in that time. Of the threads that share a policy
// (the callers of a connection, the polling threads of a queue, or the callers
// that poll in their place), only one spins at a time; the others sleep at
// once.
//
// If the event can only come from a thread on the same core, the spinning
// thread yields the core to it in each round (ipc/event_loop.h).
//
// Thread-safe.
class SpinPolicy {
 public:
  // Returns whether to spin; if true, End must be called afterwards.
  bool Begin() { return !spinning_.exchange(true, std::memory_order_relaxed); }
  void End() { spinning_.store(false, std::memory_order_relaxed); }

 private:
  std::atomic<bool> spinning_{false};
};

}  // namespace hawser::ipc

#endif  // HAWSER_IPC_SPIN_POLICY_H_
