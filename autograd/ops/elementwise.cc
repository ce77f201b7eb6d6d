#include "autograd/ops/elementwise.h"

#include <array>
#include <span>
#include <utility>

#include "async/status_macros.h"
#include "autograd/internal/record.h"
#include "tensor/ops/elementwise.h"
#include "tensor/ops/reduce.h"
#include "tensor/recording_mode.h"
#include "tensor/shape.h"

namespace hawser::autograd {
namespace {

using internal::InputGradients;
using internal::Keep;
using internal::MustRecord;
using internal::Record;
using tensor::SumTo;
using Inputs1 = std::array<const Tensor*, 1>;
using Inputs2 = std::array<const Tensor*, 2>;
using Kept = std::span<const Tensor>;

Tensor ScalarLike(const Tensor& t, double value) {
  return Tensor::Full({}, value, {t.dtype(), t.device()});
}

}  // namespace

absl::StatusOr<Tensor> Add(const Tensor& a, const Tensor& b) {
  const tensor::RawOperationsScope raw;
  ASSIGN_OR_RETURN(Tensor out, tensor::Add(a, b));
  if (!MustRecord(a, b)) return out;
  return Record(
      "AddBackward", std::move(out), Inputs2{&a, &b}, std::array<Keep, 0>{},
      [a_shape = a.shape(), b_shape = b.shape()](
          const Tensor& dout, Kept, InputGradients& gradients) -> absl::Status {
        if (gradients.needed(0)) {
          ASSIGN_OR_RETURN(gradients[0], SumTo(dout, a_shape));
        }
        if (gradients.needed(1)) {
          ASSIGN_OR_RETURN(gradients[1], SumTo(dout, b_shape));
        }
        return absl::OkStatus();
      });
}

absl::StatusOr<Tensor> Sub(const Tensor& a, const Tensor& b) {
  const tensor::RawOperationsScope raw;
  ASSIGN_OR_RETURN(Tensor out, tensor::Sub(a, b));
  if (!MustRecord(a, b)) return out;
  return Record(
      "SubBackward", std::move(out), Inputs2{&a, &b}, std::array<Keep, 0>{},
      [a_shape = a.shape(), b_shape = b.shape()](
          const Tensor& dout, Kept, InputGradients& gradients) -> absl::Status {
        if (gradients.needed(0)) {
          ASSIGN_OR_RETURN(gradients[0], SumTo(dout, a_shape));
        }
        if (gradients.needed(1)) {
          ASSIGN_OR_RETURN(Tensor sum, SumTo(dout, b_shape));
          ASSIGN_OR_RETURN(gradients[1], tensor::Neg(sum));
        }
        return absl::OkStatus();
      });
}

absl::StatusOr<Tensor> AddScaled(const Tensor& a, const Tensor& b,
                                 double alpha) {
  const tensor::RawOperationsScope raw;
  ASSIGN_OR_RETURN(Tensor out, tensor::AddScaled(a, b, alpha));
  if (!MustRecord(a, b)) return out;
  return Record(
      "AddScaledBackward", std::move(out), Inputs2{&a, &b},
      std::array<Keep, 0>{},
      [a_shape = a.shape(), b_shape = b.shape(), alpha](
          const Tensor& dout, Kept, InputGradients& gradients) -> absl::Status {
        if (gradients.needed(0)) {
          ASSIGN_OR_RETURN(gradients[0], SumTo(dout, a_shape));
        }
        if (gradients.needed(1)) {
          ASSIGN_OR_RETURN(Tensor sum, SumTo(dout, b_shape));
          ASSIGN_OR_RETURN(gradients[1], tensor::MulScalar(sum, alpha));
        }
        return absl::OkStatus();
      });
}

absl::StatusOr<Tensor> Mul(const Tensor& a, const Tensor& b) {
  const tensor::RawOperationsScope raw;
  ASSIGN_OR_RETURN(Tensor out, tensor::Mul(a, b));
  if (!MustRecord(a, b)) return out;
  return Record("MulBackward", std::move(out), Inputs2{&a, &b},
                std::array{Keep::InputIf(RequiresGrad(b), a),
                           Keep::InputIf(RequiresGrad(a), b)},
                [a_shape = a.shape(), b_shape = b.shape()](
                    const Tensor& dout, Kept kept,
                    InputGradients& gradients) -> absl::Status {
                  if (gradients.needed(0)) {
                    ASSIGN_OR_RETURN(Tensor da, tensor::Mul(dout, kept[1]));
                    ASSIGN_OR_RETURN(gradients[0], SumTo(da, a_shape));
                  }
                  if (gradients.needed(1)) {
                    ASSIGN_OR_RETURN(Tensor db, tensor::Mul(dout, kept[0]));
                    ASSIGN_OR_RETURN(gradients[1], SumTo(db, b_shape));
                  }
                  return absl::OkStatus();
                });
}

absl::StatusOr<Tensor> Div(const Tensor& a, const Tensor& b) {
  const tensor::RawOperationsScope raw;
  ASSIGN_OR_RETURN(Tensor out, tensor::Div(a, b));
  if (!MustRecord(a, b)) return out;
  // d(a/b)/db = -(1/b) (a/b).
  return Record(
      "DivBackward", std::move(out), Inputs2{&a, &b},
      std::array{Keep::InputIf(RequiresGrad(b), a), Keep::Input(b)},
      [a_shape = a.shape(), b_shape = b.shape()](
          const Tensor& dout, Kept kept,
          InputGradients& gradients) -> absl::Status {
        ASSIGN_OR_RETURN(Tensor quotient, tensor::Div(dout, kept[1]));
        if (gradients.needed(0)) {
          ASSIGN_OR_RETURN(gradients[0], SumTo(quotient, a_shape));
        }
        if (gradients.needed(1)) {
          ASSIGN_OR_RETURN(Tensor ratio, tensor::Div(kept[0], kept[1]));
          ASSIGN_OR_RETURN(Tensor product, tensor::Mul(quotient, ratio));
          ASSIGN_OR_RETURN(Tensor sum, SumTo(product, b_shape));
          ASSIGN_OR_RETURN(gradients[1], tensor::Neg(sum));
        }
        return absl::OkStatus();
      });
}

namespace {

using CompareFunction = absl::StatusOr<Tensor> (*)(const Tensor&,
                                                   const Tensor&);

// The share of `a` in the gradient `dout` of Maximum or Minimum. `wins` tells
// if its first argument is taken. A NaN is taken before numbers. Equal
// operands, or two NaNs, get half each.
absl::StatusOr<Tensor> ExtremeShare(const Tensor& a, const Tensor& b,
                                    const Tensor& dout, CompareFunction wins) {
  ASSIGN_OR_RETURN(Tensor a_wins, wins(a, b));
  ASSIGN_OR_RETURN(Tensor equal, tensor::Eq(a, b));
  ASSIGN_OR_RETURN(Tensor half, tensor::MulScalar(dout, 0.5));
  ASSIGN_OR_RETURN(Tensor whole,
                   tensor::Where(a_wins, dout, ScalarLike(dout, 0)));
  ASSIGN_OR_RETURN(Tensor of_numbers, tensor::Where(equal, half, whole));
  ASSIGN_OR_RETURN(Tensor a_is_nan, tensor::Ne(a, a));
  ASSIGN_OR_RETURN(Tensor b_is_nan, tensor::Ne(b, b));
  ASSIGN_OR_RETURN(Tensor of_nan, tensor::Where(b_is_nan, half, dout));
  return tensor::Where(a_is_nan, of_nan, of_numbers);
}

// For Maximum and Minimum.
Tensor RecordExtreme(std::string_view name, Tensor out, const Tensor& a,
                     const Tensor& b, CompareFunction wins) {
  return Record(name, std::move(out), Inputs2{&a, &b},
                std::array{Keep::Input(a), Keep::Input(b)},
                [wins](const Tensor& dout, Kept kept,
                       InputGradients& gradients) -> absl::Status {
                  ASSIGN_OR_RETURN(Tensor da,
                                   ExtremeShare(kept[0], kept[1], dout, wins));
                  if (gradients.needed(0)) {
                    ASSIGN_OR_RETURN(gradients[0], SumTo(da, kept[0].shape()));
                  }
                  if (gradients.needed(1)) {
                    ASSIGN_OR_RETURN(Tensor db, tensor::Sub(dout, da));
                    ASSIGN_OR_RETURN(gradients[1], SumTo(db, kept[1].shape()));
                  }
                  return absl::OkStatus();
                });
}

}  // namespace

absl::StatusOr<Tensor> Maximum(const Tensor& a, const Tensor& b) {
  const tensor::RawOperationsScope raw;
  ASSIGN_OR_RETURN(Tensor out, tensor::Maximum(a, b));
  if (!MustRecord(a, b)) return out;
  return RecordExtreme("MaximumBackward", std::move(out), a, b, tensor::Gt);
}

absl::StatusOr<Tensor> Minimum(const Tensor& a, const Tensor& b) {
  const tensor::RawOperationsScope raw;
  ASSIGN_OR_RETURN(Tensor out, tensor::Minimum(a, b));
  if (!MustRecord(a, b)) return out;
  return RecordExtreme("MinimumBackward", std::move(out), a, b, tensor::Lt);
}

namespace {

// b a^(b-1), which is 0 for b = 0 also where a^(b-1) is not finite.
absl::StatusOr<Tensor> PowSlopeOfBase(const Tensor& a, const Tensor& b) {
  const Tensor zero = ScalarLike(b, 0);
  ASSIGN_OR_RETURN(Tensor lower, tensor::AddScalar(b, -1));
  ASSIGN_OR_RETURN(Tensor power, tensor::Pow(a, lower));
  ASSIGN_OR_RETURN(Tensor slope, tensor::Mul(power, b));
  ASSIGN_OR_RETURN(Tensor constant, tensor::Eq(b, zero));
  return tensor::Where(constant, zero, slope);
}

// a^b log(a), which is 0 where a = 0 and b >= 0.
absl::StatusOr<Tensor> PowSlopeOfExponent(const Tensor& a, const Tensor& b) {
  const Tensor zero = ScalarLike(b, 0);
  ASSIGN_OR_RETURN(Tensor power, tensor::Pow(a, b));
  ASSIGN_OR_RETURN(Tensor log, tensor::Log(a));
  ASSIGN_OR_RETURN(Tensor slope, tensor::Mul(power, log));
  ASSIGN_OR_RETURN(Tensor base_is_zero, tensor::Eq(a, zero));
  ASSIGN_OR_RETURN(Tensor not_negative, tensor::Ge(b, zero));
  ASSIGN_OR_RETURN(Tensor at_zero, tensor::Where(not_negative, zero, slope));
  return tensor::Where(base_is_zero, at_zero, slope);
}

}  // namespace

absl::StatusOr<Tensor> Pow(const Tensor& a, const Tensor& b) {
  const tensor::RawOperationsScope raw;
  ASSIGN_OR_RETURN(Tensor out, tensor::Pow(a, b));
  if (!MustRecord(a, b)) return out;
  return Record(
      "PowBackward", std::move(out), Inputs2{&a, &b},
      std::array{Keep::Input(a), Keep::Input(b)},
      [](const Tensor& dout, Kept kept,
         InputGradients& gradients) -> absl::Status {
        const Tensor& base = kept[0];
        const Tensor& exponent = kept[1];
        if (gradients.needed(0)) {
          ASSIGN_OR_RETURN(Tensor slope, PowSlopeOfBase(base, exponent));
          ASSIGN_OR_RETURN(Tensor da, tensor::Mul(dout, slope));
          ASSIGN_OR_RETURN(gradients[0], SumTo(da, base.shape()));
        }
        if (gradients.needed(1)) {
          ASSIGN_OR_RETURN(Tensor slope, PowSlopeOfExponent(base, exponent));
          ASSIGN_OR_RETURN(Tensor db, tensor::Mul(dout, slope));
          ASSIGN_OR_RETURN(gradients[1], SumTo(db, exponent.shape()));
        }
        return absl::OkStatus();
      });
}

absl::StatusOr<Tensor> Where(const Tensor& condition, const Tensor& a,
                             const Tensor& b) {
  const tensor::RawOperationsScope raw;
  ASSIGN_OR_RETURN(Tensor out, tensor::Where(condition, a, b));
  if (!MustRecord(a, b)) return out;
  return Record(
      "WhereBackward", std::move(out), Inputs2{&a, &b},
      std::array{Keep::Input(condition)},
      [a_shape = a.shape(), b_shape = b.shape()](
          const Tensor& dout, Kept kept,
          InputGradients& gradients) -> absl::Status {
        const Tensor zero = ScalarLike(dout, 0);
        if (gradients.needed(0)) {
          ASSIGN_OR_RETURN(Tensor da, tensor::Where(kept[0], dout, zero));
          ASSIGN_OR_RETURN(gradients[0], SumTo(da, a_shape));
        }
        if (gradients.needed(1)) {
          ASSIGN_OR_RETURN(Tensor db, tensor::Where(kept[0], zero, dout));
          ASSIGN_OR_RETURN(gradients[1], SumTo(db, b_shape));
        }
        return absl::OkStatus();
      });
}

}  // namespace hawser::autograd
