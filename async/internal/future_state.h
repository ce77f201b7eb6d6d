#ifndef HAWSER_ASYNC_INTERNAL_FUTURE_STATE_H_
#define HAWSER_ASYNC_INTERNAL_FUTURE_STATE_H_

#include <atomic>
#include <cstdint>
#include <new>
#include <utility>

#include "absl/status/status.h"
#include "async/clock.h"
#include "async/task_local.h"

namespace hawser::async::internal {

// Something to do at completion. Owns itself.
class CompletionNode {
 public:
  CompletionNode() = default;
  CompletionNode(const CompletionNode&) = delete;
  CompletionNode& operator=(const CompletionNode&) = delete;
  virtual ~CompletionNode() = default;

  // Runs once, under the TaskContext of the thread that made the node, no lock
  // held, after the result was published; frees the node.
  virtual void Complete(bool cancelled) = 0;

 private:
  friend class FutureStateBase;
  friend class CompletionRunner;

  CompletionNode* next_ = nullptr;
  bool cancelled_ = false;
  TaskContext context_ = TaskContext::Capture();
};

// What a Promise and its Futures share, without the result. Lock-free; a
// thread that waits sleeps on a futex.
//
// Steps of a completion: Claim decides who completes; the winner stores the
// result; Publish closes the list of nodes, which makes the state ready, wakes
// the waiters, and runs the nodes.
class FutureStateBase {
 public:
  FutureStateBase() = default;
  FutureStateBase(const FutureStateBase&) = delete;
  FutureStateBase& operator=(const FutureStateBase&) = delete;
  virtual ~FutureStateBase() = default;

  // A reference is held by what may complete the state; a reader may also look
  // at the result. The state starts with one reference.
  void AddReference() { counts_.fetch_add(1, std::memory_order_relaxed); }
  void DropReference() { Drop(1); }
  void AddReader() { counts_.fetch_add(kReader, std::memory_order_relaxed); }
  void DropReader() { Drop(kReader); }

  // Whether the caller, a reader of a ready state, may move the result away.
  bool sole_reader() const {
    return counts_.load(std::memory_order_acquire) >> 32 == 1;
  }

  bool ready() const {
    return nodes_.load(std::memory_order_acquire) == closed();
  }

  // True for the first caller, who then stores a result and publishes.
  bool Claim() { return !claimed_.exchange(true, std::memory_order_acq_rel); }
  bool claimed() const { return claimed_.load(std::memory_order_acquire); }

  // `cancelled`: completed by Cancel. The caller holds a reference.
  void Publish(bool cancelled);

  // False if the state is ready: the node was not taken.
  bool AddNode(CompletionNode* node);
  // Of a ready state.
  bool cancelled() const { return cancelled_; }

  // True once ready, false if `deadline` passed before.
  bool WaitUntilReady(MonotonicTime deadline);

 private:
  static constexpr uint64_t kReader = uint64_t{1} << 32 | 1;
  static constexpr uint32_t kPending = 0;
  static constexpr uint32_t kAwaited = 1;
  static constexpr uint32_t kDone = 2;

  void Drop(uint64_t count) {
    const uint64_t before = counts_.fetch_sub(count, std::memory_order_acq_rel);
    if (static_cast<uint32_t>(before) == 1) delete this;
  }
  // Stands for the list after completion.
  CompletionNode* closed() const {
    return reinterpret_cast<CompletionNode*>(
        const_cast<FutureStateBase*>(this));
  }

  // Readers in the high half, references (readers too) in the low half.
  std::atomic<uint64_t> counts_{1};
  // The nodes added so far, last one first; closed() once ready.
  std::atomic<CompletionNode*> nodes_{nullptr};
  // What waiting threads sleep on.
  std::atomic<uint32_t> phase_{kPending};
  std::atomic<bool> claimed_{false};
  // Written before the list is closed.
  bool cancelled_ = false;
};

// With the result; `R` is absl::Status or absl::StatusOr<T>.
template <class R>
class FutureState final : public FutureStateBase {
 public:
  FutureState() {}
  ~FutureState() override {
    if (claimed()) result_.~R();
  }

  bool Set(R result) {
    return Complete(std::move(result), /*cancelled=*/false);
  }
  bool Cancel() {
    return Complete(absl::CancelledError("cancelled by the future's holder"),
                    /*cancelled=*/true);
  }

  // Of a ready state.
  R& result() { return result_; }

 private:
  bool Complete(R result, bool cancelled) {
    if (!Claim()) return false;
    // Whoever sees the result may destroy the promise under our feet.
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
