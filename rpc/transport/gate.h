// A way in that can be closed behind the last one out.

#ifndef HAWSER_RPC_TRANSPORT_GATE_H_
#define HAWSER_RPC_TRANSPORT_GATE_H_

#include <atomic>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "async/mutex.h"

namespace hawser::rpc {

// Lets closures that outlive an object find out whether they may still use it:
// each holds a shared_ptr to the object's gate and passes it first.
// Thread-safe.
class Gate {
 public:
  // Stands for one that is inside.
  class Entry {
   public:
    explicit Entry(Gate* gate) : gate_(gate->Enter() ? gate : nullptr) {}
    ~Entry() {
      if (gate_ != nullptr) gate_->Leave();
    }
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

    // False if the gate was closed.
    explicit operator bool() const { return gate_ != nullptr; }

   private:
    Gate* const gate_;
  };

  Gate() = default;
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  // Lets nobody in any more and waits until nobody is inside: not to be called
  // from inside. Idempotent.
  void Close();

 private:
  static constexpr uint64_t kClosed = uint64_t{1} << 63;

  bool Enter() {
    if (state_.fetch_add(1, std::memory_order_acquire) < kClosed) return true;
    Leave();
    return false;
  }
  void Leave() {
    if (state_.fetch_sub(1, std::memory_order_acq_rel) == kClosed + 1) {
      NotifyEmpty();
    }
  }
  void NotifyEmpty();

  // How many are inside, plus kClosed.
  std::atomic<uint64_t> state_{0};
  async::Mutex mutex_;
  async::CondVar empty_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_TRANSPORT_GATE_H_
