#ifndef HAWSER_AUTOGRAD_VARIABLE_H_
#define HAWSER_AUTOGRAD_VARIABLE_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "autograd/hook.h"
#include "autograd/node.h"
#include "tensor/tensor.h"

// Autograd state of a tensor. All handles of one tensor share it; views and
// detached tensors are tensors of their own.
//
// Reading is thread-safe. SetRequiresGrad, SetHistory and in-place operations
// must not run beside other uses of the same tensor. The gradient of a leaf is
// guarded: accumulation, Grad, SetGrad and ZeroGrad may run beside each other.
namespace hawser::autograd {

// Whether a gradient flows to `t`: a leaf that was marked, or a result recorded
// from a tensor that requires one. False for an undefined tensor.
bool RequiresGrad(const Tensor& t);

// Marks the leaf `t`, or takes the mark and the gradient away.
//
//   kInvalidArgument     undefined, or not of a floating-point dtype.
//   kFailedPrecondition  `t` is the result of a recorded operation: Detach it.
absl::Status SetRequiresGrad(const Tensor& t, bool requires_grad = true);

// Whether no recorded operation produced `t`.
bool IsLeaf(const Tensor& t);

// The gradient accumulated at the leaf `t`; undefined if there is none. Later
// passes add to the same memory until SetGrad or ZeroGrad: Clone to keep it.
Tensor Grad(const Tensor& t);

// Replaces the gradient of the leaf `t`; undefined takes it away. The memory is
// shared, and later passes add into it.
//
//   kFailedPrecondition  `t` is no leaf that requires a gradient.
//   kInvalidArgument     shape, dtype or device differ from those of `t`.
absl::Status SetGrad(const Tensor& t, Tensor grad);

// Drops the gradient of `t`, if any: the next pass begins a new one.
void ZeroGrad(const Tensor& t);

// Where the gradient of `t` goes: the node that produced it, or the accumulator
// of a leaf. An edge without a node if `t` requires no gradient.
Edge GradEdge(const Tensor& t);

// Makes `t` the output `output_index` of `node`. Replaces an earlier history;
// aborts if `t` is a leaf that requires a gradient.
void SetHistory(const Tensor& t, std::shared_ptr<Node> node,
                uint32_t output_index);

// A tensor on the same memory that requires no gradient.
Tensor Detach(const Tensor& t);

// Runs `hook` on the gradient of `t` once it is complete in a pass: for a leaf
// before it is accumulated, for a result before it goes on. Belongs to the
// present history of `t`.
//
//   kFailedPrecondition  `t` requires no gradient.
absl::StatusOr<HookHandle> RegisterHook(const Tensor& t, GradientHook hook);

// Runs `hook` each time a pass has delivered the gradient of the leaf `t`.
//
//   kFailedPrecondition  `t` is no leaf that requires a gradient.
absl::StatusOr<HookHandle> RegisterPostAccumulateHook(const Tensor& t,
                                                      PostAccumulateHook hook);

}  // namespace hawser::autograd

#endif  // HAWSER_AUTOGRAD_VARIABLE_H_
