#include "autograd/variable.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "async/check.h"
#include "autograd/accumulate_grad.h"
#include "autograd/internal/variable_meta.h"
#include "tensor/dtype.h"

namespace hawser::autograd {
namespace {

using internal::GetLeaf;
using internal::GetMeta;
using internal::LeafState;
using internal::VariableMeta;

absl::Status NotALeaf(const Tensor& t, absl::string_view what) {
  return absl::FailedPreconditionError(
      absl::StrCat(what, ": ", t.ToString(),
                   GetMeta(t) != nullptr && GetMeta(t)->node != nullptr
                       ? " is the result of a recorded operation, not a leaf"
                       : " does not require a gradient"));
}

}  // namespace

bool RequiresGrad(const Tensor& t) { return GetMeta(t) != nullptr; }

absl::Status SetRequiresGrad(const Tensor& t, bool requires_grad) {
  if (!t.defined()) {
    return absl::InvalidArgumentError("SetRequiresGrad: undefined tensor");
  }
  if (requires_grad && !tensor::IsFloatingPoint(t.dtype())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "SetRequiresGrad: ", t.ToString(),
        " cannot have a gradient: only floating-point tensors can"));
  }
  VariableMeta* meta = GetMeta(t);
  if (meta != nullptr && meta->node != nullptr) {
    if (requires_grad) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(
        "SetRequiresGrad: ", t.ToString(), " is the result of ",
        absl::string_view(meta->node->name().data(), meta->node->name().size()),
        ": use Detach to remove its history"));
  }
  if (!requires_grad) {
    if (meta != nullptr) t.set_autograd_meta(nullptr);
    return absl::OkStatus();
  }
  if (meta == nullptr) {
    meta = static_cast<VariableMeta*>(
        t.EmplaceAutogradMeta(std::make_unique<VariableMeta>()));
  }
  if (meta->leaf == nullptr) meta->leaf = std::make_unique<LeafState>();
  return absl::OkStatus();
}

bool IsLeaf(const Tensor& t) {
  const VariableMeta* meta = GetMeta(t);
  return meta == nullptr || meta->node == nullptr;
}

Tensor Grad(const Tensor& t) {
  LeafState* leaf = GetLeaf(t);
  if (leaf == nullptr) return Tensor();
  async::MutexLock lock(&leaf->mutex);
  return leaf->gradient;
}

absl::Status SetGrad(const Tensor& t, Tensor grad) {
  LeafState* leaf = GetLeaf(t);
  if (leaf == nullptr) {
    if (!t.defined()) {
      return absl::InvalidArgumentError("SetGrad: undefined tensor");
    }
    return NotALeaf(t, "SetGrad");
  }
  if (grad.defined() &&
      (grad.shape() != t.shape() || grad.dtype() != t.dtype() ||
       grad.device() != t.device())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "SetGrad: gradient ", grad.ToString(), " for variable ", t.ToString()));
  }
  async::MutexLock lock(&leaf->mutex);
  std::swap(leaf->gradient, grad);
  return absl::OkStatus();
}

void ZeroGrad(const Tensor& t) {
  LeafState* leaf = GetLeaf(t);
  if (leaf == nullptr) return;
  Tensor dropped;
  async::MutexLock lock(&leaf->mutex);
  std::swap(leaf->gradient, dropped);
}

Edge GradEdge(const Tensor& t) {
  VariableMeta* meta = GetMeta(t);
  if (meta == nullptr) return {};
  if (meta->node != nullptr) return {meta->node, meta->output_index};
  if (meta->leaf == nullptr) return {};
  LeafState& leaf = *meta->leaf;
  async::MutexLock lock(&leaf.mutex);
  std::shared_ptr<Node> accumulator = leaf.accumulator.lock();
  if (accumulator == nullptr) {
    accumulator = std::make_shared<AccumulateGrad>(t);
    leaf.accumulator = accumulator;
  }
  return {std::move(accumulator), 0};
}

void SetHistory(const Tensor& t, std::shared_ptr<Node> node,
                uint32_t output_index) {
  HAWSER_CHECK(output_index < node->num_inputs())
      << node->name() << " does not have output " << output_index;
  VariableMeta* meta = GetMeta(t);
  if (meta == nullptr) {
    auto fresh = std::make_unique<VariableMeta>();
    meta = fresh.get();
    t.set_autograd_meta(std::move(fresh));
  }
  HAWSER_CHECK(meta->leaf == nullptr) << "history of " << node->name()
                                      << " for a leaf that requires a gradient";
  std::swap(meta->node, node);
  meta->output_index = output_index;
  ReleaseNode(std::move(node));
}

Tensor Detach(const Tensor& t) { return t.Detach(); }

absl::StatusOr<HookHandle> RegisterHook(const Tensor& t, GradientHook hook) {
  VariableMeta* meta = GetMeta(t);
  if (meta != nullptr && meta->leaf != nullptr) {
    return meta->leaf->gradient_hooks->Add(std::move(hook));
  }
  if (meta != nullptr && meta->node != nullptr) {
    return meta->node->RegisterGradientHook(meta->output_index,
                                            std::move(hook));
  }
  if (!t.defined()) {
    return absl::InvalidArgumentError("RegisterHook: undefined tensor");
  }
  return NotALeaf(t, "RegisterHook");
}

absl::StatusOr<HookHandle> RegisterPostAccumulateHook(const Tensor& t,
                                                      PostAccumulateHook hook) {
  LeafState* leaf = GetLeaf(t);
  if (leaf == nullptr) {
    if (!t.defined()) {
      return absl::InvalidArgumentError(
          "RegisterPostAccumulateHook: undefined tensor");
    }
    return NotALeaf(t, "RegisterPostAccumulateHook");
  }
  return leaf->post_hooks->Add(std::move(hook));
}

}  // namespace hawser::autograd
