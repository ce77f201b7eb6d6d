#include "tensor/ops/softmax.h"

#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
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

// A scalar counts as having one dim of size 1.
absl::StatusOr<int> ResolveSoftmaxDim(std::string_view name, int64_t dim,
                                      const Tensor& x) {
  if (x.rank() == 0 && (dim == 0 || dim == -1)) return 0;
  return ResolveDim(name, dim, x);
}

absl::StatusOr<Tensor> RunSoftmax(std::string_view name, SoftmaxKind kind,
                                  const Tensor& x, int64_t dim) {
  RETURN_IF_ERROR(CheckFloating(name, {{"x", x}}));
  ASSIGN_OR_RETURN(const int d, ResolveSoftmaxDim(name, dim, x));
  ASSIGN_OR_RETURN(Backend* const backend, BackendFor(x.device()));
  ASSIGN_OR_RETURN(Tensor y, Tensor::TryEmpty(x.shape(), OptionsOf(x)));
  RETURN_IF_ERROR(backend->Softmax(kind, x, d, y));
  return y;
}

absl::StatusOr<Tensor> RunSoftmaxGrad(std::string_view name, SoftmaxKind kind,
                                      const Tensor& y, const Tensor& dy,
                                      int64_t dim) {
  RETURN_IF_ERROR(CheckFloating(name, {{"y", y}, {"dy", dy}}));
  if (y.shape() != dy.shape()) [[unlikely]] {
    return BadOperands(name, "shapes differ", {{"y", y}, {"dy", dy}});
  }
  ASSIGN_OR_RETURN(const int d, ResolveSoftmaxDim(name, dim, y));
  ASSIGN_OR_RETURN(Backend* const backend, BackendFor(y.device()));
  ASSIGN_OR_RETURN(Tensor dx, Tensor::TryEmpty(y.shape(), OptionsOf(y)));
  RETURN_IF_ERROR(backend->SoftmaxGrad(kind, y, dy, d, dx));
  return dx;
}

absl::Status CheckLabels(std::string_view name, Operand scores,
                         const Tensor& labels) {
  RETURN_IF_ERROR(CheckFloating(name, {scores}));
  const Operands operands = {scores, {"labels", labels}};
  RETURN_IF_ERROR(CheckOperands(name, operands));
  if (labels.dtype() != DType::kI64) [[unlikely]] {
    return BadOperands(name, "labels must be i64", operands);
  }
  if (scores.tensor.rank() != 2 || labels.rank() != 1 ||
      scores.tensor.dim(0) != labels.dim(0)) [[unlikely]] {
    return BadOperands(name, "shapes must be [n, c] and [n]", operands);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Tensor> Softmax(const Tensor& x, int64_t dim) {
  return RunSoftmax("Softmax", SoftmaxKind::kSoftmax, x, dim);
}

absl::StatusOr<Tensor> LogSoftmax(const Tensor& x, int64_t dim) {
  return RunSoftmax("LogSoftmax", SoftmaxKind::kLogSoftmax, x, dim);
}

absl::StatusOr<Tensor> SoftmaxGrad(const Tensor& y, const Tensor& dy,
                                   int64_t dim) {
  return RunSoftmaxGrad("SoftmaxGrad", SoftmaxKind::kSoftmax, y, dy, dim);
}

absl::StatusOr<Tensor> LogSoftmaxGrad(const Tensor& y, const Tensor& dy,
                                      int64_t dim) {
  return RunSoftmaxGrad("LogSoftmaxGrad", SoftmaxKind::kLogSoftmax, y, dy, dim);
}

absl::StatusOr<CrossEntropy> SoftmaxCrossEntropy(const Tensor& logits,
                                                 const Tensor& labels) {
  RETURN_IF_ERROR(
      CheckLabels("SoftmaxCrossEntropy", {"logits", logits}, labels));
  ASSIGN_OR_RETURN(Backend* const backend, BackendFor(logits.device()));
  CrossEntropy result;
  ASSIGN_OR_RETURN(result.loss, Tensor::TryEmpty(Shape(), OptionsOf(logits)));
  ASSIGN_OR_RETURN(result.probs,
                   Tensor::TryEmpty(logits.shape(), OptionsOf(logits)));
  RETURN_IF_ERROR(
      backend->SoftmaxCrossEntropy(logits, labels, result.loss, result.probs));
  return result;
}

absl::StatusOr<Tensor> SoftmaxCrossEntropyGrad(const Tensor& probs,
                                               const Tensor& labels,
                                               const Tensor& dloss) {
  constexpr std::string_view kName = "SoftmaxCrossEntropyGrad";
  RETURN_IF_ERROR(CheckLabels(kName, {"probs", probs}, labels));
  RETURN_IF_ERROR(CheckFloating(kName, {{"probs", probs}, {"dloss", dloss}}));
  if (dloss.num_elements() != 1) [[unlikely]] {
    return BadOperands(kName, "dloss must have one element",
                       {{"probs", probs}, {"dloss", dloss}});
  }
  ASSIGN_OR_RETURN(Backend* const backend, BackendFor(probs.device()));
  ASSIGN_OR_RETURN(Tensor dlogits,
                   Tensor::TryEmpty(probs.shape(), OptionsOf(probs)));
  RETURN_IF_ERROR(
      backend->SoftmaxCrossEntropyGrad(probs, labels, dloss, dlogits));
  return dlogits;
}

}  // namespace hawser::tensor
