// The news that nobody waits for an answer any more.

#ifndef HAWSER_RPC_TRANSPORT_CANCELLATION_H_
#define HAWSER_RPC_TRANSPORT_CANCELLATION_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "async/mutex.h"
#include "async/task.h"

namespace hawser::rpc {

// Set once, by whoever serves a call, when its caller gave up, died or let the
// deadline pass. Thread-safe.
class Cancellation : public std::enable_shared_from_this<Cancellation> {
 public:
  // Takes a callback back when it goes away. A callback that has begun may
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

  // Runs the callbacks, no lock held. Later calls do nothing.
  void Cancel();

  // Runs `callback` in the thread that cancels, or, if that has happened, now.
  [[nodiscard]] Registration OnCancel(absl::AnyInvocable<void() &&> callback);

 private:
  std::atomic<bool> cancelled_{false};
  async::Mutex mutex_;
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<uint64_t, async::Task> callbacks_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_TRANSPORT_CANCELLATION_H_
