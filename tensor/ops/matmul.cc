#include "tensor/ops/matmul.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/status_macros.h"
#include "tensor/backend/backend.h"
#include "tensor/backend/kernel_types.h"
#include "tensor/ops/operands.h"
#include "tensor/ops/reduce.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::tensor {
namespace {

TensorOptions OptionsOf(const Tensor& t) { return {t.dtype(), t.device()}; }

absl::StatusOr<Tensor> MatMul2d(Backend& backend, const Tensor& a,
                                const Tensor& b) {
  ASSIGN_OR_RETURN(Tensor out,
                   Tensor::TryEmpty({a.dim(0), b.dim(1)}, OptionsOf(a)));
  RETURN_IF_ERROR(backend.MatMul(a, b, out));
  return out;
}

Shape BatchDims(const Tensor& t) {
  return Shape(t.shape().span().first(t.rank() - 2));
}

absl::StatusOr<Tensor> WithRank(Tensor t, int rank) {
  while (t.rank() < rank) {
    ASSIGN_OR_RETURN(t, t.Unsqueeze(0));
  }
  return t;
}

// Of operands with at least two dims each.
absl::StatusOr<Tensor> MatMulBatched(Backend& backend, const Tensor& a,
                                     const Tensor& b) {
  absl::StatusOr<Shape> shape = BroadcastShapes(BatchDims(a), BatchDims(b));
  if (!shape.ok()) [[unlikely]] {
    return BadOperands("MatMul", "batch dims do not broadcast",
                       {{"a", a}, {"b", b}});
  }
  shape->Append(a.dim(-2));
  shape->Append(b.dim(-1));
  // One matrix b for all: the rows of a are one tall matrix.
  if (b.rank() == 2 && a.is_contiguous() && a.dim(-1) > 0) {
    const int64_t k = a.dim(-1);
    ASSIGN_OR_RETURN(const Tensor rows, a.View({a.num_elements() / k, k}));
    ASSIGN_OR_RETURN(const Tensor out, MatMul2d(backend, rows, b));
    return out.View(*shape);
  }
  ASSIGN_OR_RETURN(Tensor out, Tensor::TryEmpty(*shape, OptionsOf(a)));
  ASSIGN_OR_RETURN(const Tensor left, WithRank(a, shape->rank()));
  ASSIGN_OR_RETURN(const Tensor right, WithRank(b, shape->rank()));
  RETURN_IF_ERROR(backend.MatMul(left, right, out));
  return out;
}

// `t` as rows of its last dim; `t` itself if it is a matrix.
absl::StatusOr<Tensor> Rows(const Tensor& t) {
  if (t.rank() == 2) return t;
  const int64_t cols = t.dim(-1);
  const int64_t rows =
      Shape(t.shape().span().first(t.rank() - 1)).num_elements();
  return t.Reshape({rows, cols});
}

absl::Status CheckLinear(const Tensor& x, const Tensor& w, const Tensor& bias) {
  const Operands operands = {{"x", x}, {"w", w}, {"bias", bias}};
  if (bias.defined()) {
    RETURN_IF_ERROR(CheckFloating("Linear", operands));
  } else {
    RETURN_IF_ERROR(CheckFloating("Linear", {{"x", x}, {"w", w}}));
  }
  if (w.rank() != 2 || x.rank() < 1 || x.dim(-1) != w.dim(1)) [[unlikely]] {
    return BadOperands("Linear", "x must be [..., in] and w [out, in]",
                       operands);
  }
  if (bias.defined() && (bias.rank() != 1 || bias.dim(0) != w.dim(0)))
      [[unlikely]] {
    return BadOperands("Linear", "bias must be [out]", operands);
  }
  return absl::OkStatus();
}

absl::Status CheckLinearGrad(const Tensor& x, const Tensor& w, const Tensor& y,
                             const Tensor& dy, Activation activation) {
  const Operands operands = {{"x", x}, {"w", w}, {"dy", dy}, {"y", y}};
  if (activation == Activation::kRelu) {
    RETURN_IF_ERROR(CheckFloating("LinearGrad", operands));
  } else {
    RETURN_IF_ERROR(
        CheckFloating("LinearGrad", {{"x", x}, {"w", w}, {"dy", dy}}));
  }
  const bool fit =
      w.rank() == 2 && x.rank() >= 1 && dy.rank() == x.rank() &&
      x.dim(-1) == w.dim(1) && dy.dim(-1) == w.dim(0) &&
      std::equal(x.shape().begin(), x.shape().end() - 1, dy.shape().begin());
  if (!fit) [[unlikely]] {
    return BadOperands("LinearGrad",
                       "x must be [..., in], w [out, in] and dy [..., out]",
                       operands);
  }
  if (activation == Activation::kRelu && y.shape() != dy.shape()) [[unlikely]] {
    return BadOperands("LinearGrad", "y and dy differ in shape", operands);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Tensor> MatMul(const Tensor& a, const Tensor& b) {
  RETURN_IF_ERROR(CheckFloating("MatMul", {{"a", a}, {"b", b}}));
  if (a.rank() == 0 || b.rank() == 0) [[unlikely]] {
    return BadOperands("MatMul", "operands must have a dim",
                       {{"a", a}, {"b", b}});
  }
  const int64_t inner = b.rank() == 1 ? b.dim(0) : b.dim(-2);
  if (a.dim(-1) != inner) [[unlikely]] {
    return BadOperands("MatMul", "inner sizes differ", {{"a", a}, {"b", b}});
  }
  ASSIGN_OR_RETURN(Backend* const backend, BackendFor(a.device()));
  if (a.rank() == 2 && b.rank() == 2) return MatMul2d(*backend, a, b);
  if (a.rank() >= 2 && b.rank() >= 2) return MatMulBatched(*backend, a, b);

  Tensor left = a, right = b;
  if (a.rank() == 1) {
    ASSIGN_OR_RETURN(left, a.Unsqueeze(0));
  }
  if (b.rank() == 1) {
    ASSIGN_OR_RETURN(right, b.Unsqueeze(1));
  }
  ASSIGN_OR_RETURN(Tensor out, MatMulBatched(*backend, left, right));
  if (b.rank() == 1) {
    ASSIGN_OR_RETURN(out, out.Squeeze(-1));
  }
  if (a.rank() == 1) {
    ASSIGN_OR_RETURN(out, out.Squeeze(b.rank() == 1 ? -1 : -2));
  }
  return out;
}

absl::StatusOr<Tensor> Linear(const Tensor& x, const Tensor& w,
                              const Tensor& bias, Activation activation) {
  RETURN_IF_ERROR(CheckLinear(x, w, bias));
  ASSIGN_OR_RETURN(Backend* const backend, BackendFor(x.device()));
  ASSIGN_OR_RETURN(const Tensor rows, Rows(x));
  ASSIGN_OR_RETURN(Tensor out,
                   Tensor::TryEmpty({rows.dim(0), w.dim(0)}, OptionsOf(x)));
  RETURN_IF_ERROR(backend->Linear(rows, w, bias, activation, out));
  if (x.rank() == 2) return out;
  Shape shape = x.shape();
  shape[shape.rank() - 1] = w.dim(0);
  return out.View(shape);
}

absl::StatusOr<LinearGradients> LinearGrad(const Tensor& x, const Tensor& w,
                                           const Tensor& y, const Tensor& dy,
                                           Activation activation,
                                           LinearGradNeeds needs) {
  RETURN_IF_ERROR(CheckLinearGrad(x, w, y, dy, activation));
  ASSIGN_OR_RETURN(Backend* const backend, BackendFor(x.device()));
  LinearGradients gradients;
  ASSIGN_OR_RETURN(Tensor dz, Rows(dy));
  if (activation == Activation::kRelu) {
    ASSIGN_OR_RETURN(const Tensor out, Rows(y));
    const Tensor dout = std::move(dz);
    ASSIGN_OR_RETURN(dz, Tensor::TryEmpty(dout.shape(), OptionsOf(x)));
    if (needs.bias) {
      ASSIGN_OR_RETURN(gradients.bias,
                       Tensor::TryEmpty({w.dim(0)}, OptionsOf(x)));
    }
    RETURN_IF_ERROR(backend->ReluBiasGrad(out, dout, dz, gradients.bias));
  } else if (needs.bias) {
    ASSIGN_OR_RETURN(gradients.bias, Sum(dz, {0}));
  }
  if (needs.w) {
    ASSIGN_OR_RETURN(const Tensor rows, Rows(x));
    ASSIGN_OR_RETURN(const Tensor transposed, dz.T());
    ASSIGN_OR_RETURN(gradients.w, MatMul2d(*backend, transposed, rows));
  }
  if (needs.x) {
    ASSIGN_OR_RETURN(gradients.x, MatMul2d(*backend, dz, w));
    if (x.rank() != 2) {
      ASSIGN_OR_RETURN(gradients.x, gradients.x.View(x.shape()));
    }
  }
  return gradients;
}

}  // namespace hawser::tensor
