// Notification that a call was cancelled.

#ifndef HAWSER_RPC_TRANSPORT_CANCELLATION_H_
#define HAWSER_RPC_TRANSPORT_CANCELLATION_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "async/mutex.h"
#include "async/task.h"

namespace hawser::rpc {

// The server of a call sets it, once, when the caller cancels, disconnects or
// the deadline passes. Thread-safe.
class Cancellation : public std::enable_shared_from_this<Cancellation> {
 public:
  // Unregisters a callback on destruction. A callback that has started may
  // still be running then.
  class Registration {
   public:
    Registration() = default;
    Registration(Registration&& other) noexcept
        : cancellation_(std::move(other.cancellation_)), id_(other.id_) {}
    Registration& operator=(Registration&& other) noexcept;
    ~Registration() { Reset(); }

    void Reset();

   private:
    friend class Cancellation;
    Registration(std::weak_ptr<Cancellation> cancellation, uint64_t id)
        : cancellation_(std::move(cancellation)), id_(id) {}

    std::weak_ptr<Cancellation> cancellation_;
    uint64_t id_ = 0;
  };

  bool cancelled() const { return cancelled_.load(std::memory_order_acquire); }

  // Runs the callbacks without holding a lock. Later calls have no effect.
  void Cancel();

  // Runs `callback` in the cancelling thread, or now if already cancelled.
  [[nodiscard]] Registration OnCancel(absl::AnyInvocable<void() &&> callback);

 private:
  std::atomic<bool> cancelled_{false};
  async::Mutex mutex_;
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  std::unordered_map<uint64_t, async::Task> callbacks_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_TRANSPORT_CANCELLATION_H_
