// Guard for access to an object that may be closed.

#ifndef HAWSER_RPC_TRANSPORT_GATE_H_
#define HAWSER_RPC_TRANSPORT_GATE_H_

#include <atomic>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "async/mutex.h"

namespace hawser::rpc {

// Lets closures that may outlive an object check whether it may still be used:
// each holds a shared_ptr to the object's gate and creates an Entry first.
// Thread-safe.
class Gate {
 public:
  // Keeps the gate from closing during its lifetime.
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

  // Rejects new entries and waits until existing ones are destroyed. Must not
  // be called while holding an entry. Idempotent.
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

  // Number of entries, plus kClosed.
  std::atomic<uint64_t> state_{0};
  async::Mutex mutex_;
  async::CondVar empty_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_TRANSPORT_GATE_H_
