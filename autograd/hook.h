#ifndef HAWSER_AUTOGRAD_HOOK_H_
#define HAWSER_AUTOGRAD_HOOK_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/mutex.h"
#include "tensor/tensor.h"

namespace hawser::autograd {

// Hooks on gradients. They run in the order of registration, in the thread of
// the backward pass, with recording switched off and no lock held. An error of
// a hook stops the pass. A hook runs in several threads concurrently only if
// several passes run over one graph concurrently.
//
// A gradient that replaces another must have its shape, dtype and device;
// otherwise the pass fails with kInvalidArgument.

// Receives the gradient of a tensor and returns its replacement; undefined
// keeps the gradient.
using GradientHook =
    absl::AnyInvocable<absl::StatusOr<Tensor>(const Tensor& gradient)>;

// Runs after a pass has delivered the gradient of a leaf, to `Grad(variable)`
// or to the capture function of the pass.
using PostAccumulateHook =
    absl::AnyInvocable<absl::Status(const Tensor& variable)>;

// Receives all gradients that are passed to a node, and may replace them.
using NodePreHook =
    absl::AnyInvocable<absl::Status(std::vector<Tensor>& grad_outputs)>;

// Receives all gradients that a node has computed, and may replace them.
using NodePostHook =
    absl::AnyInvocable<absl::Status(std::vector<Tensor>& grad_inputs)>;

namespace internal {

class HookListBase {
 public:
  virtual ~HookListBase() = default;
  virtual void Remove(uint64_t id) = 0;
};

}  // namespace internal

// A handle of one registered hook. Destroying the handle does not remove the
// hook.
class HookHandle {
 public:
  HookHandle() = default;

  // Removes the hook if it is still registered. A running pass may still run it
  // once.
  void Remove();

 private:
  template <class Hook>
  friend class HookList;

  HookHandle(std::weak_ptr<internal::HookListBase> list, uint64_t id);

  std::weak_ptr<internal::HookListBase> list_;
  uint64_t id_ = 0;
};

// An ordered set of hooks of one kind. Thread-safe.
template <class Hook>
class HookList final : public internal::HookListBase,
                       public std::enable_shared_from_this<HookList<Hook>> {
 public:
  HookHandle Add(Hook hook) {
    async::MutexLock lock(&mutex_);
    const uint64_t id = next_id_++;
    hooks_.push_back({id, std::make_shared<Hook>(std::move(hook))});
    count_.store(hooks_.size(), std::memory_order_release);
    return HookHandle(this->weak_from_this(), id);
  }

  void Remove(uint64_t id) override {
    async::MutexLock lock(&mutex_);
    std::erase_if(hooks_, [id](const Entry& entry) { return entry.id == id; });
    count_.store(hooks_.size(), std::memory_order_release);
  }

  bool empty() const { return count_.load(std::memory_order_acquire) == 0; }

  // The hooks registered now, to be run without holding a lock.
  std::vector<std::shared_ptr<Hook>> Snapshot() const {
    async::MutexLock lock(&mutex_);
    std::vector<std::shared_ptr<Hook>> hooks;
    hooks.reserve(hooks_.size());
    for (const Entry& entry : hooks_) hooks.push_back(entry.hook);
    return hooks;
  }

 private:
  struct Entry {
    uint64_t id;
    std::shared_ptr<Hook> hook;
  };

  // Lets a pass skip the lock if the list is empty.
  std::atomic<size_t> count_{0};
  mutable async::Mutex mutex_;
  uint64_t next_id_ ABSL_GUARDED_BY(mutex_) = 1;
  std::vector<Entry> hooks_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::autograd

#endif  // HAWSER_AUTOGRAD_HOOK_H_
