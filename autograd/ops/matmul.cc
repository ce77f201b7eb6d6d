#include "autograd/ops/matmul.h"

#include <array>
#include <cstdint>
#include <span>
#include <utility>

#include "async/status_macros.h"
#include "autograd/internal/record.h"
#include "tensor/ops/matmul.h"
#include "tensor/ops/reduce.h"
#include "tensor/recording_mode.h"
#include "tensor/shape.h"

namespace hawser::autograd {
namespace {

using internal::InputGradients;
using internal::Keep;
using internal::MustRecord;
using internal::Record;
using tensor::Shape;
using Kept = std::span<const Tensor>;

absl::StatusOr<Tensor> TransposeMatrices(const Tensor& t) {
  return t.Transpose(-2, -1);
}

// Reshapes a batch of matrices to one matrix: [..., r, c] to [all others, c].
absl::StatusOr<Tensor> Flatten(const Tensor& t) {
  return t.Reshape(Shape({-1, t.dim(-1)}));
}

// The gradient of `a` in a b, for matrices or batches. `dout` is the gradient
// of the product.
absl::StatusOr<Tensor> LeftGradient(const Tensor& dout, const Tensor& b,
                                    const Shape& a_shape) {
  ASSIGN_OR_RETURN(Tensor b_transposed, TransposeMatrices(b));
  ASSIGN_OR_RETURN(Tensor da, tensor::MatMul(dout, b_transposed));
  return tensor::SumTo(da, a_shape);
}

absl::StatusOr<Tensor> RightGradient(const Tensor& dout, const Tensor& a,
                                     const Shape& b_shape) {
  if (b_shape.rank() == 2 && a.rank() > 2 && a.num_elements() > 0) {
    // One product that sums over the batch, instead of one for each matrix.
    ASSIGN_OR_RETURN(Tensor rows, Flatten(a));
    ASSIGN_OR_RETURN(Tensor rows_transposed, rows.T());
    ASSIGN_OR_RETURN(Tensor dout_rows, Flatten(dout));
    return tensor::MatMul(rows_transposed, dout_rows);
  }
  ASSIGN_OR_RETURN(Tensor a_transposed, TransposeMatrices(a));
  ASSIGN_OR_RETURN(Tensor db, tensor::MatMul(a_transposed, dout));
  return tensor::SumTo(db, b_shape);
}

Shape AsMatrixShape(const Shape& shape, bool is_left) {
  if (shape.rank() != 1) return shape;
  return is_left ? Shape({1, shape[0]}) : Shape({shape[0], 1});
}

// A tensor of `shape` that must not be read: it does not use memory.
absl::StatusOr<Tensor> ShapeOnly(const Shape& shape, const Tensor& like) {
  return Tensor::Zeros({}, {like.dtype(), like.device()}).Expand(shape);
}

}  // namespace

absl::StatusOr<Tensor> MatMul(const Tensor& a, const Tensor& b) {
  const tensor::RawOperationsScope raw;
  ASSIGN_OR_RETURN(Tensor out, tensor::MatMul(a, b));
  if (!MustRecord(a, b)) return out;
  return Record("MatMulBackward", std::move(out), std::array{&a, &b},
                std::array{Keep::InputIf(RequiresGrad(b), a),
                           Keep::InputIf(RequiresGrad(a), b)},
                [a_shape = a.shape(), b_shape = b.shape()](
                    const Tensor& dout, Kept kept,
                    InputGradients& gradients) -> absl::Status {
                  // With the dims of size 1 that were removed for vectors, all
                  // operands are matrices.
                  const Shape left_shape = AsMatrixShape(a_shape, true);
                  const Shape right_shape = AsMatrixShape(b_shape, false);
                  Tensor matrices = dout;
                  if (b_shape.rank() == 1) {
                    ASSIGN_OR_RETURN(matrices, matrices.Unsqueeze(-1));
                  }
                  if (a_shape.rank() == 1) {
                    ASSIGN_OR_RETURN(matrices, matrices.Unsqueeze(-2));
                  }
                  if (gradients.needed(0)) {
                    ASSIGN_OR_RETURN(Tensor right,
                                     kept[1].Reshape(right_shape));
                    ASSIGN_OR_RETURN(Tensor da,
                                     LeftGradient(matrices, right, left_shape));
                    ASSIGN_OR_RETURN(gradients[0], da.Reshape(a_shape));
                  }
                  if (gradients.needed(1)) {
                    ASSIGN_OR_RETURN(Tensor left, kept[0].Reshape(left_shape));
                    ASSIGN_OR_RETURN(
                        Tensor db, RightGradient(matrices, left, right_shape));
                    ASSIGN_OR_RETURN(gradients[1], db.Reshape(b_shape));
                  }
                  return absl::OkStatus();
                });
}

absl::StatusOr<Tensor> Linear(const Tensor& x, const Tensor& w,
                              const Tensor& bias, Activation activation) {
  const tensor::RawOperationsScope raw;
  ASSIGN_OR_RETURN(Tensor out, tensor::Linear(x, w, bias, activation));
  if (!MustRecord(x, w, bias)) return out;
  const Keep output =
      activation == Activation::kNone ? Keep::Nothing() : Keep::Output(out);
  return Record(
      "LinearBackward", out, std::array{&x, &w, &bias},
      std::array{Keep::InputIf(RequiresGrad(w), x),
                 Keep::InputIf(RequiresGrad(x), w), output},
      [x_shape = x.shape(), w_shape = w.shape(), activation](
          const Tensor& dout, Kept kept,
          InputGradients& gradients) -> absl::Status {
        Tensor saved_x = kept[0];
        Tensor saved_w = kept[1];
        if (!saved_x.defined()) {
          ASSIGN_OR_RETURN(saved_x, ShapeOnly(x_shape, dout));
        }
        if (!saved_w.defined()) {
          ASSIGN_OR_RETURN(saved_w, ShapeOnly(w_shape, dout));
        }
        ASSIGN_OR_RETURN(
            tensor::LinearGradients all,
            tensor::LinearGrad(saved_x, saved_w, kept[2], dout, activation,
                               {.x = gradients.needed(0),
                                .w = gradients.needed(1),
                                .bias = gradients.needed(2)}));
        gradients[0] = std::move(all.x);
        gradients[1] = std::move(all.w);
        gradients[2] = std::move(all.bias);
        return absl::OkStatus();
      });
}

}  // namespace hawser::autograd
