#ifndef HAWSER_AUTOGRAD_GRADCHECK_H_
#define HAWSER_AUTOGRAD_GRADCHECK_H_

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

// Numerical checks of gradients. All tensors are f64 on the CPU.
namespace hawser::autograd {

// A leaf that requires a gradient, with these elements in row-major order.
Tensor Variable(const std::vector<double>& values, const tensor::Shape& shape);

// The same with random elements from [low, high), determined by `seed`.
struct RandomRange {
  double low = -1;
  double high = 1;
  uint64_t seed = 1;
};
Tensor RandomVariable(const tensor::Shape& shape, RandomRange range = {});

struct GradcheckOptions {
  double step = 1e-5;
  double relative_tolerance = 1e-6;
  double absolute_tolerance = 1e-8;
};

using TensorFunction =
    std::function<absl::StatusOr<Tensor>(std::span<const Tensor> inputs)>;

// Compares the gradients of `function` with central differences at each element
// of `inputs`, which are leaves that require a gradient. Weights the output by
// fixed, irregular numbers. The function must be deterministic, and smooth
// within a step of the inputs.
//
//   kDataLoss  a gradient differs; names the input, the element and both
//              values.
// Errors of the function and of its backward step are returned unchanged.
absl::Status CheckGradients(const TensorFunction& function,
                            std::vector<Tensor> inputs,
                            GradcheckOptions options = {});

// The elements of the gradients of `inputs`, row-major, for the gradient `dout`
// of `out`.
absl::StatusOr<std::vector<std::vector<double>>> GradientsOf(
    const Tensor& out, const std::vector<double>& dout,
    std::vector<Tensor> inputs);

}  // namespace hawser::autograd

#endif  // HAWSER_AUTOGRAD_GRADCHECK_H_
