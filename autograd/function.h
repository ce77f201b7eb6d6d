#ifndef HAWSER_AUTOGRAD_FUNCTION_H_
#define HAWSER_AUTOGRAD_FUNCTION_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tensor/tensor.h"

namespace hawser::autograd {

// State that a Function keeps from its forward to its backward step.
class FunctionContext {
 public:
  virtual ~FunctionContext() = default;

  // Forward only: keeps inputs, outputs or other tensors. May be called once.
  virtual void SaveForBackward(std::vector<Tensor> tensors) = 0;

  // Forward only: output `i` is not differentiable; its gradient is zero.
  virtual void MarkNonDifferentiable(size_t i) = 0;

  // Backward only: returns the saved tensors, in order.
  //
  //   kFailedPrecondition  one was written in place since, or was released.
  virtual absl::StatusOr<std::vector<Tensor>> saved_tensors() const = 0;

  // Whether the gradient of input `i` is needed.
  virtual bool needs_input_gradient(size_t i) const = 0;
};

// A differentiable operation defined outside this library. Arguments that are
// not tensors are members of the derived class:
//
//   class Scale final : public Function {
//    public:
//     explicit Scale(double factor) : factor_(factor) {}
//     std::string_view name() const override { return "Scale"; }
//     ...
//   };
//   ASSIGN_OR_RETURN(std::vector<Tensor> y,
//                    Apply(std::make_unique<Scale>(2.0), {x}));
class Function {
 public:
  virtual ~Function() = default;

  virtual std::string_view name() const = 0;

  // Computes the outputs. Runs once, with recording switched off.
  virtual absl::StatusOr<std::vector<Tensor>> Forward(
      FunctionContext& context, std::span<const Tensor> inputs) = 0;

  // Takes a gradient for each output, zeros by default, and returns one for
  // each input; undefined stands for zero or an unneeded gradient. Runs once in
  // each pass; concurrent passes run it concurrently.
  virtual absl::StatusOr<std::vector<Tensor>> Backward(
      const FunctionContext& context, std::vector<Tensor> output_gradients) = 0;
};

// Runs `function` on `inputs` and records it if one of them requires a
// gradient. An input may be undefined. An output that is one of the inputs is
// returned as a new tensor on the same memory. If the function returns
// gradients whose number, shape or dtype does not fit the inputs, the backward
// pass fails with kInvalidArgument, naming the function.
absl::StatusOr<std::vector<Tensor>> Apply(std::unique_ptr<Function> function,
                                          std::vector<Tensor> inputs);

}  // namespace hawser::autograd

#endif  // HAWSER_AUTOGRAD_FUNCTION_H_
