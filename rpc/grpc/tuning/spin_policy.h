// Policy that decides if a thread spins before it sleeps.

#ifndef HAWSER_RPC_GRPC_TUNING_SPIN_POLICY_H_
#define HAWSER_RPC_GRPC_TUNING_SPIN_POLICY_H_

#include <atomic>

namespace hawser::rpc {

// Looking saves the wake-up of a thread, and costs the time of a core when what
// is awaited takes longer than one looks. So of those that share a policy (the
// callers of a connection, the polling threads of a queue, those who poll in
// place of these) one looks at a time, and after one that looked in vain the
// next kRest do not.
//
// Thread-safe.
class SpinPolicy {
 public:
  static constexpr int kRest = 15;

  // Whether to look; then End must be called.
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

  // `came`: what was awaited was there in time.
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
