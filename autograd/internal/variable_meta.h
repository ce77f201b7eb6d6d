#ifndef HAWSER_AUTOGRAD_INTERNAL_VARIABLE_META_H_
#define HAWSER_AUTOGRAD_INTERNAL_VARIABLE_META_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "async/mutex.h"
#include "autograd/hook.h"
#include "autograd/node.h"
#include "tensor/autograd_meta.h"
#include "tensor/tensor.h"

namespace hawser::autograd::internal {

// Additional state of a leaf that requires a gradient.
struct LeafState {
  async::Mutex mutex;
  Tensor gradient ABSL_GUARDED_BY(mutex);
  // The accumulator owns the leaf, so that a graph keeps its leaves alive.
  std::weak_ptr<Node> accumulator ABSL_GUARDED_BY(mutex);
  const std::shared_ptr<HookList<GradientHook>> gradient_hooks =
      std::make_shared<HookList<GradientHook>>();
  const std::shared_ptr<HookList<PostAccumulateHook>> post_hooks =
      std::make_shared<HookList<PostAccumulateHook>>();
};

// Autograd state of a tensor: its history, or its state as a leaf.
struct VariableMeta final : public tensor::AutogradMeta {
  ~VariableMeta() override { ReleaseNode(std::move(node)); }

  std::shared_ptr<Node> node;
  uint32_t output_index = 0;
  std::unique_ptr<LeafState> leaf;
};

// Null if the tensor has none. Only autograd/ sets the slot.
inline VariableMeta* GetMeta(const Tensor& t) {
  return t.defined() ? static_cast<VariableMeta*>(t.autograd_meta()) : nullptr;
}

// Null unless `t` is a leaf that requires a gradient.
inline LeafState* GetLeaf(const Tensor& t) {
  VariableMeta* meta = GetMeta(t);
  return meta != nullptr ? meta->leaf.get() : nullptr;
}

}  // namespace hawser::autograd::internal

#endif  // HAWSER_AUTOGRAD_INTERNAL_VARIABLE_META_H_
