#include "tensor/ops/layer_norm.h"

#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "tensor/backend/backend.h"
#include "tensor/dtype.h"
#include "tensor/ops/operands.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::tensor {
namespace {

TensorOptions OptionsOf(const Tensor& t) { return {t.dtype(), t.device()}; }

TensorOptions StatisticsOptions(const Tensor& x) {
  return {SumDType(x.dtype()), x.device()};
}

// x as a matrix, a row for each mean.
struct Rows {
  int64_t rows;
  int64_t cols;
  Shape normalized;
};

absl::StatusOr<Rows> CheckNormalized(std::string_view name, const Tensor& x,
                                     int normalized_rank) {
  RETURN_IF_ERROR(CheckFloating(name, {{"x", x}}));
  if (normalized_rank < 1 || normalized_rank > x.rank()) [[unlikely]] {
    return BadOperands(
        name, absl::StrCat("cannot normalize ", normalized_rank, " dims"),
        {{"x", x}});
  }
  Rows rows;
  const auto dims = x.shape().span();
  const size_t leading = dims.size() - static_cast<size_t>(normalized_rank);
  rows.normalized = Shape(dims.subspan(leading));
  rows.rows = Shape(dims.first(leading)).num_elements();
  rows.cols = rows.normalized.num_elements();
  return rows;
}

// A parameter as one row; stays undefined.
absl::StatusOr<Tensor> AsRow(std::string_view name, std::string_view role,
                             const Tensor& parameter, const Tensor& x,
                             const Rows& rows) {
  if (!parameter.defined()) return parameter;
  const Operands operands = {{"x", x}, {role, parameter}};
  RETURN_IF_ERROR(CheckFloating(name, operands));
  if (parameter.shape() != rows.normalized) [[unlikely]] {
    return BadOperands(name, "a parameter must have the normalized dims",
                       operands);
  }
  return parameter.Reshape({rows.cols});
}

}  // namespace

absl::StatusOr<LayerNormResult> LayerNorm(const Tensor& x, int normalized_rank,
                                          const Tensor& weight,
                                          const Tensor& bias, double eps) {
  constexpr std::string_view kName = "LayerNorm";
  ASSIGN_OR_RETURN(const Rows rows, CheckNormalized(kName, x, normalized_rank));
  ASSIGN_OR_RETURN(const Tensor w, AsRow(kName, "weight", weight, x, rows));
  ASSIGN_OR_RETURN(const Tensor b, AsRow(kName, "bias", bias, x, rows));
  if (!(eps >= 0)) [[unlikely]] {
    return BadOperands(kName, absl::StrCat("eps must be at least 0, not ", eps),
                       {{"x", x}});
  }
  ASSIGN_OR_RETURN(Backend* const backend, BackendFor(x.device()));
  ASSIGN_OR_RETURN(const Tensor matrix, x.Reshape({rows.rows, rows.cols}));
  LayerNormResult result;
  ASSIGN_OR_RETURN(result.y,
                   Tensor::TryEmpty({rows.rows, rows.cols}, OptionsOf(x)));
  ASSIGN_OR_RETURN(result.mean,
                   Tensor::TryEmpty({rows.rows}, StatisticsOptions(x)));
  ASSIGN_OR_RETURN(result.rstd,
                   Tensor::TryEmpty({rows.rows}, StatisticsOptions(x)));
  RETURN_IF_ERROR(backend->LayerNorm(matrix, w, b, eps, result.y, result.mean,
                                     result.rstd));
  ASSIGN_OR_RETURN(result.y, result.y.View(x.shape()));
  return result;
}

absl::StatusOr<LayerNormGradients> LayerNormGrad(
    const Tensor& dy, const Tensor& x, int normalized_rank, const Tensor& mean,
    const Tensor& rstd, const Tensor& weight) {
  constexpr std::string_view kName = "LayerNormGrad";
  ASSIGN_OR_RETURN(const Rows rows, CheckNormalized(kName, x, normalized_rank));
  ASSIGN_OR_RETURN(const Tensor w, AsRow(kName, "weight", weight, x, rows));
  RETURN_IF_ERROR(CheckFloating(kName, {{"x", x}, {"dy", dy}}));
  if (dy.shape() != x.shape()) [[unlikely]] {
    return BadOperands(kName, "shapes differ", {{"x", x}, {"dy", dy}});
  }
  const Operands statistics = {{"x", x}, {"mean", mean}, {"rstd", rstd}};
  RETURN_IF_ERROR(CheckOperands(kName, statistics));
  const DType dtype = StatisticsOptions(x).dtype;
  if (mean.shape() != Shape{rows.rows} || rstd.shape() != mean.shape() ||
      mean.dtype() != dtype || rstd.dtype() != dtype) [[unlikely]] {
    return BadOperands(kName, "mean and rstd are not those of the result",
                       statistics);
  }
  ASSIGN_OR_RETURN(Backend* const backend, BackendFor(x.device()));
  const Shape matrix = {rows.rows, rows.cols};
  ASSIGN_OR_RETURN(const Tensor x2, x.Reshape(matrix));
  ASSIGN_OR_RETURN(const Tensor dy2, dy.Reshape(matrix));
  LayerNormGradients grads;
  ASSIGN_OR_RETURN(grads.x, Tensor::TryEmpty(matrix, OptionsOf(x)));
  ASSIGN_OR_RETURN(grads.weight, Tensor::TryEmpty({rows.cols}, OptionsOf(x)));
  ASSIGN_OR_RETURN(grads.bias, Tensor::TryEmpty({rows.cols}, OptionsOf(x)));
  RETURN_IF_ERROR(backend->LayerNormGrad(dy2, x2, mean, rstd, w, grads.x,
                                         grads.weight, grads.bias));
  ASSIGN_OR_RETURN(grads.x, grads.x.View(x.shape()));
  ASSIGN_OR_RETURN(grads.weight, grads.weight.View(rows.normalized));
  ASSIGN_OR_RETURN(grads.bias, grads.bias.View(rows.normalized));
  return grads;
}

}  // namespace hawser::tensor
