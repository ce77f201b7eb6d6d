#ifndef HAWSER_ASYNC_INTERNAL_FUTURE_STATE_H_
#define HAWSER_ASYNC_INTERNAL_FUTURE_STATE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include "absl/status/status.h"
#include "async/clock.h"
#include "async/task_local.h"
#include "async/wait_poller.h"

namespace hawser::async::internal {

// An action to run at completion. Owns itself.
class CompletionNode {
 public:
  CompletionNode() = default;
  CompletionNode(const CompletionNode&) = delete;
  CompletionNode& operator=(const CompletionNode&) = delete;
  virtual ~CompletionNode() = default;

  // Runs once after the result is published, under the TaskContext of the
  // thread that created the node, without holding a lock. Frees the node.
  virtual void Complete(bool cancelled) = 0;

 private:
  friend class FutureStateBase;
  friend class CompletionRunner;

  CompletionNode* next_ = nullptr;
  bool cancelled_ = false;
  TaskContext context_ = TaskContext::Capture();
};

// State shared by a Promise and its Futures, without the result. Lock-free;
// waiting threads sleep on a futex.
//
// Steps of a completion: Claim decides who completes; the winner stores the
// result; Publish closes the list of nodes, which makes the state ready, wakes
// the waiters, and runs the nodes.
class FutureStateBase {
 public:
  FutureStateBase() = default;
  FutureStateBase(const FutureStateBase&) = delete;
  FutureStateBase& operator=(const FutureStateBase&) = delete;
  virtual ~FutureStateBase();

  // Whoever may complete the state holds a reference; a reader is a reference
  // that may also access the result. The state starts with one reference.
  void AddReference() { counts_.fetch_add(1, std::memory_order_relaxed); }
  void DropReference() { Drop(1); }
  void AddReader() { counts_.fetch_add(kReader, std::memory_order_relaxed); }
  void DropReader() { Drop(kReader); }

  // Whether the caller, a reader of a ready state, may move the result.
  bool sole_reader() const {
    return counts_.load(std::memory_order_acquire) >> 32 == 1;
  }

  bool ready() const {
    return nodes_.load(std::memory_order_acquire) == closed();
  }

  // True for the first caller, which then stores a result and publishes it.
  bool Claim() { return !claimed_.exchange(true, std::memory_order_acq_rel); }
  bool claimed() const { return claimed_.load(std::memory_order_acquire); }

  // `cancelled`: completed by Cancel. The caller holds a reference.
  void Publish(bool cancelled);

  // Returns false, without taking the node, if the state is ready.
  bool AddNode(CompletionNode* node);
  // Requires a ready state.
  bool cancelled() const { return cancelled_; }

  // Drops the reference of a promise: kCancelled if it was not used.
  void DropPromise();

  // Returns true once ready, false if `deadline` passes first.
  bool WaitUntilReady(MonotonicTime deadline);

  // The poller that WaitUntilReady uses before it sleeps; may be null. Set
  // before the state has a second reader.
  void set_poller(std::shared_ptr<WaitPoller> poller) {
    poller_ = std::move(poller);
  }
  const std::shared_ptr<WaitPoller>& poller() const { return poller_; }

 protected:
  struct Ready {};
  // A ready state with one reader, whose result the derived class has.
  explicit FutureStateBase(Ready)
      : counts_(kReader), nodes_(closed()), phase_(kDone), claimed_(true) {}

  // Completes the state with `error`, unless it is claimed.
  virtual void Fail(absl::Status error) = 0;

 private:
  static constexpr uint64_t kReader = uint64_t{1} << 32 | 1;
  static constexpr uint32_t kPending = 0;
  static constexpr uint32_t kAwaited = 1;
  static constexpr uint32_t kDone = 2;

  void Drop(uint64_t count) {
    const uint64_t before = counts_.fetch_sub(count, std::memory_order_acq_rel);
    if (static_cast<uint32_t>(before) == 1) delete this;
  }
  // Marks the list as closed after completion.
  CompletionNode* closed() const {
    return reinterpret_cast<CompletionNode*>(
        const_cast<FutureStateBase*>(this));
  }

  // Readers in the high half, references (readers too) in the low half.
  std::atomic<uint64_t> counts_{1};
  // The nodes added so far, newest first; closed() once ready.
  std::atomic<CompletionNode*> nodes_{nullptr};
  // Futex word of waiting threads.
  std::atomic<uint32_t> phase_{kPending};
  std::atomic<bool> claimed_{false};
  // Written before the list is closed.
  bool cancelled_ = false;
  std::shared_ptr<WaitPoller> poller_;
};

// The shared state with the result; `R` is absl::Status or absl::StatusOr<T>.
template <class R>
class FutureState final : public FutureStateBase {
 public:
  FutureState() {}
  // Ready, with one reader.
  explicit FutureState(R result)
      : FutureStateBase(Ready()), result_(std::move(result)) {}
  ~FutureState() override {
    if (claimed()) result_.~R();
  }

  bool Set(R result) {
    return Complete(std::move(result), /*cancelled=*/false);
  }
  bool Cancel() {
    return Complete(absl::CancelledError("cancelled by a holder of the future"),
                    /*cancelled=*/true);
  }

  // Requires a ready state.
  R& result() { return result_; }

 private:
  void Fail(absl::Status error) override { Set(std::move(error)); }

  bool Complete(R result, bool cancelled) {
    if (!Claim()) return false;
    // A thread that sees the result may destroy the promise while this runs.
    AddReference();
    new (&result_) R(std::move(result));
    Publish(cancelled);
    DropReference();
    return true;
  }

  union {
    R result_;
  };
};

}  // namespace hawser::async::internal

#endif  // HAWSER_ASYNC_INTERNAL_FUTURE_STATE_H_
