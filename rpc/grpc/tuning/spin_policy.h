// Policy that decides whether a thread spins before it sleeps.

#ifndef HAWSER_RPC_GRPC_TUNING_SPIN_POLICY_H_
#define HAWSER_RPC_GRPC_TUNING_SPIN_POLICY_H_

#include <atomic>

namespace hawser::rpc {

// Spinning saves the wake-up of a thread, but wastes the time of a core if the
// event takes longer than the spin. Therefore, of the threads that share a
// policy (the callers of a connection, the polling threads of a queue, or the
// callers that poll in their place), only one spins at a time, and after an
// unsuccessful spin the next kRest attempts do not spin.
//
// Thread-safe.
class SpinPolicy {
 public:
  static constexpr int kRest = 15;

  // Returns whether to spin; if true, End must be called afterwards.
  bool Begin() {
    int resting = resting_.load(std::memory_order_relaxed);
    while (resting > 0) {
      if (resting_.compare_exchange_weak(resting, resting - 1,
                                         std::memory_order_relaxed)) {
        return false;
      }
    }
    return !looking_.exchange(true, std::memory_order_relaxed);
  }

  // `came`: whether the event arrived in time.
  void End(bool came) {
    if (!came) resting_.store(kRest, std::memory_order_relaxed);
    looking_.store(false, std::memory_order_relaxed);
  }

 private:
  std::atomic<int> resting_{0};
  std::atomic<bool> looking_{false};
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_GRPC_TUNING_SPIN_POLICY_H_
