#include "async/internal/future_state.h"

#include <chrono>

#include "absl/status/status.h"
#include "async/blocking_region.h"
#include "async/internal/futex.h"

namespace hawser::async::internal {
namespace {

// Completions triggered by completions nest on the stack. Beyond this depth
// they are queued until the thread returns to the outermost completion, or
// blocks.
constexpr int kMaxDepth = 100;

// The nodes that a thread has deferred, oldest first.
struct Deferred {
  CompletionNode* first = nullptr;
  CompletionNode* last = nullptr;
};

thread_local constinit int t_depth = 0;
thread_local constinit Deferred t_deferred;

}  // namespace

class CompletionRunner {
 public:
  static void Run(CompletionNode* last_added_first, bool cancelled) {
    if (last_added_first == nullptr) return;
    CompletionNode* node = nullptr;
    while (last_added_first != nullptr) {
      CompletionNode* next = last_added_first->next_;
      last_added_first->next_ = node;
      last_added_first->cancelled_ = cancelled;
      node = last_added_first;
      last_added_first = next;
    }
    if (t_depth >= kMaxDepth) {
      Defer(node);
      return;
    }
    ++t_depth;
    while (node != nullptr) RunAndPop(node);
    if (t_depth == 1) RunDeferred();
    --t_depth;
  }

  static void RunDeferred() {
    while (t_deferred.first != nullptr) {
      CompletionNode* node = t_deferred.first;
      t_deferred.first = node->next_;
      RunAndPop(node);
    }
  }

 private:
  static void Defer(CompletionNode* nodes) {
    (t_deferred.first == nullptr ? t_deferred.first : t_deferred.last->next_) =
        nodes;
    while (nodes->next_ != nullptr) nodes = nodes->next_;
    t_deferred.last = nodes;
  }

  static void RunAndPop(CompletionNode*& node) {
    CompletionNode* current = node;
    node = node->next_;
    TaskContext::Scope scope(std::move(current->context_));
    current->Complete(current->cancelled_);
  }
};

FutureStateBase::~FutureStateBase() = default;

void FutureStateBase::DropPromise() {
  if (!claimed()) Fail(absl::CancelledError("the promise was dropped"));
  DropReference();
}

void FutureStateBase::Publish(bool cancelled) {
  cancelled_ = cancelled;
  CompletionNode* nodes = nodes_.exchange(closed(), std::memory_order_acq_rel);
  if (phase_.exchange(kDone, std::memory_order_acq_rel) == kAwaited) {
    FutexWakeAll(&phase_);
  }
  CompletionRunner::Run(nodes, cancelled);
}

bool FutureStateBase::AddNode(CompletionNode* node) {
  CompletionNode* last = nodes_.load(std::memory_order_acquire);
  do {
    if (last == closed()) return false;
    node->next_ = last;
  } while (!nodes_.compare_exchange_weak(last, node, std::memory_order_release,
                                         std::memory_order_acquire));
  return true;
}

bool FutureStateBase::WaitUntilReady(MonotonicTime deadline) {
  if (ready()) return true;
  // One of them may complete this state.
  CompletionRunner::RunDeferred();
  if (ready()) return true;
  if (poller_ != nullptr) {
    poller_->PollUntil([&] {
      return ready() || (deadline != kNever &&
                         std::chrono::steady_clock::now() >= deadline);
    });
    if (ready()) return true;
  }

  BlockingRegion region;
  uint32_t phase = kPending;
  if (!phase_.compare_exchange_strong(phase, kAwaited,
                                      std::memory_order_acq_rel) &&
      phase == kDone) {
    return true;
  }
  while (phase_.load(std::memory_order_acquire) != kDone) {
    if (!FutexWait(phase_, kAwaited, deadline)) return ready();
  }
  return true;
}

}  // namespace hawser::async::internal
