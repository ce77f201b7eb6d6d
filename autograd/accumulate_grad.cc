#include "autograd/accumulate_grad.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "autograd/internal/variable_meta.h"
#include "tensor/ops/in_place.h"

namespace hawser::autograd {
namespace {

using internal::GetLeaf;
using internal::LeafState;

bool SameKind(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() &&
         a.device() == b.device();
}

}  // namespace

AccumulateGrad::AccumulateGrad(Tensor variable)
    : Node({}, 1, Priority::kFirst), variable_(std::move(variable)) {}

absl::StatusOr<std::vector<Tensor>> AccumulateGrad::Apply(
    std::vector<Tensor> grad_outputs) {
  if (!grad_outputs[0].defined()) return std::vector<Tensor>();
  ASSIGN_OR_RETURN(Tensor gradient,
                   PrepareGradient(std::move(grad_outputs[0])));
  // Null if SetRequiresGrad was switched off for the variable.
  if (LeafState* leaf = GetLeaf(variable_)) {
    async::MutexLock lock(&leaf->mutex);
    RETURN_IF_ERROR(AddGradient(leaf->gradient, std::move(gradient)));
  }
  RETURN_IF_ERROR(RunPostHooks());
  return std::vector<Tensor>();
}

absl::StatusOr<Tensor> AccumulateGrad::PrepareGradient(Tensor gradient) const {
  const LeafState* leaf = GetLeaf(variable_);
  if (leaf != nullptr && !leaf->gradient_hooks->empty()) {
    for (const auto& hook : leaf->gradient_hooks->Snapshot()) {
      ASSIGN_OR_RETURN(Tensor replaced, (*hook)(gradient));
      if (!replaced.defined()) continue;
      if (!SameKind(replaced, variable_)) {
        return absl::InvalidArgumentError(absl::StrCat(
            "a gradient hook returned ", replaced.ToString(),
            " as the gradient of variable ", variable_.ToString(),
            "; it must return one of the same shape, dtype and device"));
      }
      gradient = std::move(replaced);
    }
  }
  if (!SameKind(gradient, variable_)) {
    return absl::InvalidArgumentError(
        absl::StrCat("gradient ", gradient.ToString(), " for variable ",
                     variable_.ToString()));
  }
  return gradient;
}

absl::Status AccumulateGrad::RunPostHooks() const {
  const LeafState* leaf = GetLeaf(variable_);
  if (leaf == nullptr || leaf->post_hooks->empty()) return absl::OkStatus();
  for (const auto& hook : leaf->post_hooks->Snapshot()) {
    RETURN_IF_ERROR((*hook)(variable_));
  }
  return absl::OkStatus();
}

absl::Status AddGradient(Tensor& sum, Tensor gradient) {
  if (!sum.defined()) {
    // Optimizers need dense memory, and a broadcast gradient cannot be written
    // in place.
    if (!gradient.is_contiguous() || !gradient.is_unshared()) {
      ASSIGN_OR_RETURN(gradient, gradient.Clone());
    }
    sum = std::move(gradient);
    return absl::OkStatus();
  }
  if (!SameKind(sum, gradient)) {
    return absl::InvalidArgumentError(
        absl::StrCat("gradient ", gradient.ToString(),
                     " to be added to one of ", sum.ToString()));
  }
  if (sum.storage() == gradient.storage() && !sum.is_same(gradient)) {
    // They may overlap, shifted or transposed.
    ASSIGN_OR_RETURN(gradient, gradient.Clone());
  }
  return tensor::AddInPlace(sum, gradient);
}

}  // namespace hawser::autograd
