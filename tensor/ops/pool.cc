#include "tensor/ops/pool.h"

#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "tensor/backend/backend.h"
#include "tensor/backend/kernel_types.h"
#include "tensor/dtype.h"
#include "tensor/ops/operands.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::tensor {
namespace {

TensorOptions OptionsOf(const Tensor& t) { return {t.dtype(), t.device()}; }

// With a stride of 0 replaced by the kernel's size.
Pool2dOptions WithStride(Pool2dOptions options) {
  for (int i = 0; i < 2; ++i) {
    if (options.stride[i] == 0) options.stride[i] = options.kernel[i];
  }
  return options;
}

// The shape of the result; kInvalidArgument unless everything fits.
absl::StatusOr<Shape> OutputShape(std::string_view name, const Shape& x,
                                  const Pool2dOptions& options) {
  const auto bad = [&](std::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat(
        absl::string_view(name.data(), name.size()), ": ",
        absl::string_view(why.data(), why.size()), ": x is ", x.ToString(),
        ", kernel [", options.kernel[0], ", ", options.kernel[1], "], stride [",
        options.stride[0], ", ", options.stride[1], "], padding [",
        options.padding[0], ", ", options.padding[1], "]"));
  };
  if (x.rank() != 4) return bad("x must be [n, c, h, w]");
  Shape y = {x[0], x[1], 0, 0};
  for (int i = 0; i < 2; ++i) {
    if (options.kernel[i] < 1 || options.stride[i] < 1 ||
        options.padding[i] < 0 || options.padding[i] > options.kernel[i] / 2) {
      return bad("options are out of range");
    }
    // Without a sum that could overflow; padding is below the kernel's size.
    const int64_t room = x[2 + i] - options.kernel[i] + 2 * options.padding[i];
    if (room < 0) return bad("the kernel is larger than the padded input");
    y[2 + i] = room / options.stride[i] + 1;
  }
  return y;
}

absl::Status CheckGradient(std::string_view name, const Tensor& dy,
                           const Shape& expected) {
  if (dy.shape() == expected) return absl::OkStatus();
  return BadOperands(name,
                     absl::StrCat("the result has shape ", expected.ToString()),
                     {{"dy", dy}});
}

}  // namespace

absl::StatusOr<MaxPool> MaxPool2d(const Tensor& x,
                                  const Pool2dOptions& options) {
  RETURN_IF_ERROR(CheckFloating("MaxPool2d", {{"x", x}}));
  const Pool2dOptions full = WithStride(options);
  ASSIGN_OR_RETURN(const Shape shape,
                   OutputShape("MaxPool2d", x.shape(), full));
  ASSIGN_OR_RETURN(Backend* const backend, BackendFor(x.device()));
  MaxPool result;
  ASSIGN_OR_RETURN(result.values, Tensor::TryEmpty(shape, OptionsOf(x)));
  ASSIGN_OR_RETURN(result.indices,
                   Tensor::TryEmpty(shape, {DType::kI64, x.device()}));
  RETURN_IF_ERROR(backend->MaxPool2d(x, full, result.values, result.indices));
  return result;
}

absl::StatusOr<Tensor> MaxPool2dGrad(const Tensor& dy, const Tensor& indices,
                                     const Shape& input_shape) {
  constexpr std::string_view kName = "MaxPool2dGrad";
  const Operands operands = {{"dy", dy}, {"indices", indices}};
  RETURN_IF_ERROR(CheckFloating(kName, {{"dy", dy}}));
  RETURN_IF_ERROR(CheckOperands(kName, operands));
  if (indices.dtype() != DType::kI64 || indices.shape() != dy.shape() ||
      dy.rank() != 4) [[unlikely]] {
    return BadOperands(kName, "must be [n, c, h, w] and i64 of that shape",
                       operands);
  }
  if (input_shape.rank() != 4 || input_shape[0] != dy.shape()[0] ||
      input_shape[1] != dy.shape()[1]) [[unlikely]] {
    return BadOperands(
        kName, absl::StrCat("no result of an input ", input_shape.ToString()),
        operands);
  }
  ASSIGN_OR_RETURN(Backend* const backend, BackendFor(dy.device()));
  ASSIGN_OR_RETURN(Tensor dx, Tensor::TryEmpty(input_shape, OptionsOf(dy)));
  RETURN_IF_ERROR(backend->MaxPool2dGrad(dy, indices, dx));
  return dx;
}

absl::StatusOr<Tensor> AvgPool2d(const Tensor& x,
                                 const Pool2dOptions& options) {
  RETURN_IF_ERROR(CheckFloating("AvgPool2d", {{"x", x}}));
  const Pool2dOptions full = WithStride(options);
  ASSIGN_OR_RETURN(const Shape shape,
                   OutputShape("AvgPool2d", x.shape(), full));
  ASSIGN_OR_RETURN(Backend* const backend, BackendFor(x.device()));
  ASSIGN_OR_RETURN(Tensor y, Tensor::TryEmpty(shape, OptionsOf(x)));
  RETURN_IF_ERROR(backend->AvgPool2d(x, full, y));
  return y;
}

absl::StatusOr<Tensor> AvgPool2dGrad(const Tensor& dy, const Shape& input_shape,
                                     const Pool2dOptions& options) {
  constexpr std::string_view kName = "AvgPool2dGrad";
  RETURN_IF_ERROR(CheckFloating(kName, {{"dy", dy}}));
  const Pool2dOptions full = WithStride(options);
  ASSIGN_OR_RETURN(const Shape shape, OutputShape(kName, input_shape, full));
  RETURN_IF_ERROR(CheckGradient(kName, dy, shape));
  ASSIGN_OR_RETURN(Backend* const backend, BackendFor(dy.device()));
  ASSIGN_OR_RETURN(Tensor dx, Tensor::TryEmpty(input_shape, OptionsOf(dy)));
  RETURN_IF_ERROR(backend->AvgPool2dGrad(dy, full, dx));
  return dx;
}

}  // namespace hawser::tensor
