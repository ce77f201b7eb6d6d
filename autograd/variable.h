#ifndef HAWSER_AUTOGRAD_VARIABLE_H_
#define HAWSER_AUTOGRAD_VARIABLE_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "autograd/hook.h"
#include "autograd/node.h"
#include "tensor/tensor.h"

// Autograd state of tensors. All handles of one tensor share it; views and
// detached tensors are separate tensors.
//
// Reading is thread-safe. SetRequiresGrad, SetHistory and in-place operations
// must not run concurrently with other uses of the same tensor. The gradient of
// a leaf is guarded: accumulation, Grad, SetGrad and ZeroGrad may run
// concurrently.
namespace hawser::autograd {

// Whether `t` gets a gradient: a leaf marked by SetRequiresGrad, or a result
// recorded from a tensor that requires one. False for an undefined tensor.
bool RequiresGrad(const Tensor& t);

// Marks the leaf `t`, or removes the mark and the gradient.
//
//   kInvalidArgument     undefined, or not of a floating-point dtype.
//   kFailedPrecondition  `t` is the result of a recorded operation: Detach it.
absl::Status SetRequiresGrad(const Tensor& t, bool requires_grad = true);

// Whether `t` is not the result of a recorded operation.
bool IsLeaf(const Tensor& t);

// Returns the gradient accumulated at the leaf `t`; undefined if it has none.
// Later passes add to the same memory until SetGrad or ZeroGrad: Clone to keep
// it.
Tensor Grad(const Tensor& t);

// Replaces the gradient of the leaf `t`; undefined removes it. The memory is
// shared, and later passes add to it.
//
//   kFailedPrecondition  `t` is not a leaf that requires a gradient.
//   kInvalidArgument     shape, dtype or device differ from those of `t`.
absl::Status SetGrad(const Tensor& t, Tensor grad);

// Removes the gradient of `t`; the next pass starts a new one.
void ZeroGrad(const Tensor& t);

// Destination of the gradient of `t`: the node that produced it, or the
// accumulator of a leaf. An edge without a node if `t` does not require a
// gradient.
Edge GradEdge(const Tensor& t);

// Makes `t` the output `output_index` of `node`. Replaces an earlier history;
// aborts if `t` is a leaf that requires a gradient.
void SetHistory(const Tensor& t, std::shared_ptr<Node> node,
                uint32_t output_index);

// Returns a tensor on the same memory that does not require a gradient.
Tensor Detach(const Tensor& t);

// Runs `hook` on the gradient of `t` once it is complete in a pass: for a leaf,
// before it is accumulated; for a result, before it is passed on. Belongs to
// the current history of `t`.
//
//   kFailedPrecondition  `t` does not require a gradient.
absl::StatusOr<HookHandle> RegisterHook(const Tensor& t, GradientHook hook);

// Runs `hook` each time a pass has delivered the gradient of the leaf `t`.
//
//   kFailedPrecondition  `t` is not a leaf that requires a gradient.
absl::StatusOr<HookHandle> RegisterPostAccumulateHook(const Tensor& t,
                                                      PostAccumulateHook hook);

}  // namespace hawser::autograd

#endif  // HAWSER_AUTOGRAD_VARIABLE_H_
