#ifndef HAWSER_AUTOGRAD_ACCUMULATE_GRAD_H_
#define HAWSER_AUTOGRAD_ACCUMULATE_GRAD_H_

#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "autograd/node.h"
#include "tensor/tensor.h"

namespace hawser::autograd {

// The end of the graph at a leaf: runs the leaf's gradient hooks, adds the
// gradient to `Grad(variable())`, then runs the post-accumulate hooks. Hooks
// belong to the leaf, not to this node. Thread-safe.
class AccumulateGrad final : public Node {
 public:
  explicit AccumulateGrad(Tensor variable);

  std::string_view name() const override { return "AccumulateGrad"; }

  // Undefined gradients change nothing and run no hook.
  //
  //   kInvalidArgument  the gradient's shape, dtype or device is not the
  //                     variable's.
  absl::StatusOr<std::vector<Tensor>> Apply(
      std::vector<Tensor> grad_outputs) override;

  AccumulateGrad* accumulator() override { return this; }

  const Tensor& variable() const { return variable_; }

  // The three steps of `Apply`, for a pass that captures gradients: it runs
  // the first, delivers the gradient itself, and runs the last. `gradient` is
  // defined.
  absl::StatusOr<Tensor> PrepareGradient(Tensor gradient) const;
  absl::Status RunPostHooks() const;

 private:
  const Tensor variable_;
};

// Adds `gradient` to `sum`. An undefined `sum` takes over the memory of
// `gradient` if nobody else holds it, and a copy otherwise; a defined one is
// written in place. Shapes, dtypes and devices must be equal.
absl::Status AddGradient(Tensor& sum, Tensor gradient);

}  // namespace hawser::autograd

#endif  // HAWSER_AUTOGRAD_ACCUMULATE_GRAD_H_
