#include "tensor/ops/conv2d.h"

#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "tensor/backend/backend.h"
#include "tensor/backend/kernel_types.h"
#include "tensor/ops/operands.h"
#include "tensor/ops/reduce.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::tensor {
namespace {

// Sizes and options beyond this are mistakes, and could overflow.
constexpr int64_t kMaxOption = int64_t{1} << 24;

absl::Status CheckOptions(std::string_view name, const Conv2dOptions& options) {
  bool fit = options.groups >= 1 && options.groups <= kMaxOption;
  for (int i = 0; i < 2; ++i) {
    fit = fit && options.stride[i] >= 1 && options.stride[i] <= kMaxOption &&
          options.padding[i] >= 0 && options.padding[i] <= kMaxOption &&
          options.dilation[i] >= 1 && options.dilation[i] <= kMaxOption;
  }
  if (fit) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      absl::string_view(name.data(), name.size()), ": stride [",
      options.stride[0], ", ", options.stride[1], "], padding [",
      options.padding[0], ", ", options.padding[1], "], dilation [",
      options.dilation[0], ", ", options.dilation[1], "] or groups ",
      options.groups, " is out of range"));
}

// The shape of the result; kInvalidArgument unless everything fits.
absl::StatusOr<Shape> OutputShape(std::string_view name, const Shape& x,
                                  const Shape& w,
                                  const Conv2dOptions& options) {
  RETURN_IF_ERROR(CheckOptions(name, options));
  const auto bad = [&](std::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat(
        absl::string_view(name.data(), name.size()), ": ",
        absl::string_view(why.data(), why.size()), ": x is ", x.ToString(),
        ", weight is ", w.ToString(), ", groups ", options.groups));
  };
  if (x.rank() != 4 || w.rank() != 4) {
    return bad("x must be [n, c, h, w] and weight [o, c / groups, kh, kw]");
  }
  if (x[1] != w[1] * options.groups || w[0] % options.groups != 0) {
    return bad("channels do not fit");
  }
  Shape y = {x[0], w[0], 0, 0};
  for (int i = 0; i < 2; ++i) {
    if (w[2 + i] < 1 || w[2 + i] > kMaxOption) return bad("an empty kernel");
    const int64_t reach = options.dilation[i] * (w[2 + i] - 1) + 1;
    const int64_t span = x[2 + i] + 2 * options.padding[i];
    if (span < reach) return bad("the kernel is larger than the padded input");
    y[2 + i] = (span - reach) / options.stride[i] + 1;
  }
  return y;
}

TensorOptions OptionsOf(const Tensor& t) { return {t.dtype(), t.device()}; }

absl::Status CheckGradient(std::string_view name, const Tensor& dy,
                           const Shape& expected) {
  if (dy.shape() == expected) return absl::OkStatus();
  return BadOperands(name,
                     absl::StrCat("the result has shape ", expected.ToString()),
                     {{"dy", dy}});
}

}  // namespace

absl::StatusOr<Tensor> Conv2d(const Tensor& x, const Tensor& weight,
                              const Tensor& bias,
                              const Conv2dOptions& options) {
  RETURN_IF_ERROR(CheckFloating("Conv2d", {{"x", x}, {"weight", weight}}));
  if (bias.defined()) {
    const Operands operands = {{"weight", weight}, {"bias", bias}};
    RETURN_IF_ERROR(CheckFloating("Conv2d", operands));
    if (bias.rank() != 1 || bias.dim(0) != weight.shape()[0]) [[unlikely]] {
      return BadOperands("Conv2d", "bias must be [o]", operands);
    }
  }
  ASSIGN_OR_RETURN(const Shape shape,
                   OutputShape("Conv2d", x.shape(), weight.shape(), options));
  ASSIGN_OR_RETURN(Backend* const backend, BackendFor(x.device()));
  ASSIGN_OR_RETURN(Tensor y, Tensor::TryEmpty(shape, OptionsOf(x)));
  RETURN_IF_ERROR(backend->Conv2d(x, weight, bias, options, y));
  return y;
}

absl::StatusOr<Tensor> Conv2dInputGrad(const Tensor& dy, const Tensor& weight,
                                       const Shape& input_shape,
                                       const Conv2dOptions& options) {
  constexpr std::string_view kName = "Conv2dInputGrad";
  RETURN_IF_ERROR(CheckFloating(kName, {{"dy", dy}, {"weight", weight}}));
  ASSIGN_OR_RETURN(const Shape shape,
                   OutputShape(kName, input_shape, weight.shape(), options));
  RETURN_IF_ERROR(CheckGradient(kName, dy, shape));
  ASSIGN_OR_RETURN(Backend* const backend, BackendFor(dy.device()));
  ASSIGN_OR_RETURN(Tensor dx, Tensor::TryEmpty(input_shape, OptionsOf(dy)));
  RETURN_IF_ERROR(backend->Conv2dInputGrad(dy, weight, options, dx));
  return dx;
}

absl::StatusOr<Tensor> Conv2dWeightGrad(const Tensor& dy, const Tensor& x,
                                        const Shape& weight_shape,
                                        const Conv2dOptions& options) {
  constexpr std::string_view kName = "Conv2dWeightGrad";
  RETURN_IF_ERROR(CheckFloating(kName, {{"dy", dy}, {"x", x}}));
  ASSIGN_OR_RETURN(const Shape shape,
                   OutputShape(kName, x.shape(), weight_shape, options));
  RETURN_IF_ERROR(CheckGradient(kName, dy, shape));
  ASSIGN_OR_RETURN(Backend* const backend, BackendFor(dy.device()));
  ASSIGN_OR_RETURN(Tensor dw, Tensor::TryEmpty(weight_shape, OptionsOf(dy)));
  RETURN_IF_ERROR(backend->Conv2dWeightGrad(dy, x, options, dw));
  return dw;
}

absl::StatusOr<Tensor> Conv2dBiasGrad(const Tensor& dy) {
  RETURN_IF_ERROR(CheckFloating("Conv2dBiasGrad", {{"dy", dy}}));
  if (dy.rank() != 4) [[unlikely]] {
    return BadOperands("Conv2dBiasGrad", "dy must be [n, o, h, w]",
                       {{"dy", dy}});
  }
  return Sum(dy, {0, 2, 3});
}

}  // namespace hawser::tensor
