#ifndef HAWSER_AUTOGRAD_ACCUMULATE_GRAD_H_
#define HAWSER_AUTOGRAD_ACCUMULATE_GRAD_H_

#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "autograd/node.h"
#include "tensor/tensor.h"

namespace hawser::autograd {

// The node at a leaf of the graph. It runs the leaf's gradient hooks, adds the
// gradient to `Grad(variable())`, then runs the post-accumulate hooks. Hooks
// belong to the leaf, not to this node. Thread-safe.
class AccumulateGrad final : public Node {
 public:
  explicit AccumulateGrad(Tensor variable);

  std::string_view name() const override { return "AccumulateGrad"; }

  // Undefined gradients have no effect and do not run hooks.
  //
  //   kInvalidArgument  the gradient differs from the variable in shape, dtype
  //                     or device.
  absl::StatusOr<std::vector<Tensor>> Apply(
      std::vector<Tensor> grad_outputs) override;

  AccumulateGrad* accumulator() override { return this; }

  const Tensor& variable() const { return variable_; }

  // The hook steps of `Apply`, for a pass that captures gradients: it runs the
  // first, delivers the gradient itself, then runs the last. `gradient` must be
  // defined.
  absl::StatusOr<Tensor> PrepareGradient(Tensor gradient) const;
  absl::Status RunPostHooks() const;

 private:
  const Tensor variable_;
};

// Adds `gradient` to `sum`. A defined `sum` is written in place. An undefined
// one takes over the memory of `gradient`, or copies it if the memory is
// shared. Shapes, dtypes and devices must be equal.
absl::Status AddGradient(Tensor& sum, Tensor gradient);

}  // namespace hawser::autograd

#endif  // HAWSER_AUTOGRAD_ACCUMULATE_GRAD_H_
