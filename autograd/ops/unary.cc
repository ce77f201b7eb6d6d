// Functions of one tensor in autograd/ops/elementwise.h.

#include <array>
#include <span>
#include <string_view>
#include <utility>

#include "async/status_macros.h"
#include "autograd/internal/record.h"
#include "autograd/ops/elementwise.h"
#include "tensor/ops/elementwise.h"
#include "tensor/recording_mode.h"

namespace hawser::autograd {
namespace {

using internal::InputGradients;
using internal::Keep;
using internal::MustRecord;

using UnaryFunction = absl::StatusOr<Tensor> (*)(const Tensor&);

// `gradient_step` is absl::StatusOr<Tensor>(const Tensor& kept, const Tensor&
// dout) and returns the gradient of the input.
template <class GradientStep>
Tensor RecordUnary(std::string_view name, Tensor out, const Tensor& a,
                   Keep kept, GradientStep gradient_step) {
  return internal::Record(
      name, std::move(out), std::array<const Tensor*, 1>{&a}, std::array{kept},
      [gradient_step](const Tensor& dout, std::span<const Tensor> saved,
                      InputGradients& gradients) -> absl::Status {
        ASSIGN_OR_RETURN(gradients[0], gradient_step(saved[0], dout));
        return absl::OkStatus();
      });
}

// Records a function whose gradient is computed from its input.
template <class GradientStep>
absl::StatusOr<Tensor> FromInput(std::string_view name, UnaryFunction function,
                                 const Tensor& a, GradientStep gradient_step) {
  const tensor::RawOperationsScope raw;
  ASSIGN_OR_RETURN(Tensor out, function(a));
  if (!MustRecord(a)) return out;
  return RecordUnary(name, std::move(out), a, Keep::Input(a), gradient_step);
}

// Records a function whose gradient is computed from its output.
template <class GradientStep>
absl::StatusOr<Tensor> FromOutput(std::string_view name, UnaryFunction function,
                                  const Tensor& a, GradientStep gradient_step) {
  const tensor::RawOperationsScope raw;
  ASSIGN_OR_RETURN(Tensor out, function(a));
  if (!MustRecord(a)) return out;
  const Keep kept = Keep::Output(out);
  return RecordUnary(name, out, a, kept, gradient_step);
}

}  // namespace

absl::StatusOr<Tensor> AddScalar(const Tensor& a, double b) {
  const tensor::RawOperationsScope raw;
  ASSIGN_OR_RETURN(Tensor out, tensor::AddScalar(a, b));
  if (!MustRecord(a)) return out;
  return RecordUnary(
      "AddScalarBackward", std::move(out), a, Keep::Nothing(),
      [](const Tensor&, const Tensor& dout) -> absl::StatusOr<Tensor> {
        return dout;
      });
}

absl::StatusOr<Tensor> MulScalar(const Tensor& a, double b) {
  const tensor::RawOperationsScope raw;
  ASSIGN_OR_RETURN(Tensor out, tensor::MulScalar(a, b));
  if (!MustRecord(a)) return out;
  return RecordUnary("MulScalarBackward", std::move(out), a, Keep::Nothing(),
                     [b](const Tensor&, const Tensor& dout) {
                       return tensor::MulScalar(dout, b);
                     });
}

absl::StatusOr<Tensor> PowScalar(const Tensor& a, double b) {
  const tensor::RawOperationsScope raw;
  ASSIGN_OR_RETURN(Tensor out, tensor::PowScalar(a, b));
  if (!MustRecord(a)) return out;
  return RecordUnary(
      "PowScalarBackward", std::move(out), a, Keep::Input(a),
      [b](const Tensor& x, const Tensor& dout) -> absl::StatusOr<Tensor> {
        // 0 also at x = 0, where x^-1 is infinite.
        if (b == 0) {
          return Tensor::Zeros(dout.shape(), {dout.dtype(), dout.device()});
        }
        ASSIGN_OR_RETURN(Tensor power, tensor::PowScalar(x, b - 1));
        ASSIGN_OR_RETURN(Tensor slope, tensor::MulScalar(power, b));
        return tensor::Mul(dout, slope);
      });
}

absl::StatusOr<Tensor> Neg(const Tensor& a) {
  const tensor::RawOperationsScope raw;
  ASSIGN_OR_RETURN(Tensor out, tensor::Neg(a));
  if (!MustRecord(a)) return out;
  return RecordUnary(
      "NegBackward", std::move(out), a, Keep::Nothing(),
      [](const Tensor&, const Tensor& dout) { return tensor::Neg(dout); });
}

absl::StatusOr<Tensor> Sign(const Tensor& a) {
  const tensor::RawOperationsScope raw;
  ASSIGN_OR_RETURN(Tensor out, tensor::Sign(a));
  if (!MustRecord(a)) return out;
  return RecordUnary(
      "SignBackward", std::move(out), a, Keep::Nothing(),
      [](const Tensor&, const Tensor& dout) -> absl::StatusOr<Tensor> {
        return Tensor::Zeros(dout.shape(), {dout.dtype(), dout.device()});
      });
}

absl::StatusOr<Tensor> Exp(const Tensor& a) {
  return FromOutput("ExpBackward", tensor::Exp, a,
                    [](const Tensor& out, const Tensor& dout) {
                      return tensor::Mul(dout, out);
                    });
}

absl::StatusOr<Tensor> Log(const Tensor& a) {
  return FromInput(
      "LogBackward", tensor::Log, a,
      [](const Tensor& x, const Tensor& dout) { return tensor::Div(dout, x); });
}

absl::StatusOr<Tensor> Sqrt(const Tensor& a) {
  return FromOutput(
      "SqrtBackward", tensor::Sqrt, a,
      [](const Tensor& out, const Tensor& dout) -> absl::StatusOr<Tensor> {
        ASSIGN_OR_RETURN(Tensor twice, tensor::Div(dout, out));
        return tensor::MulScalar(twice, 0.5);
      });
}

absl::StatusOr<Tensor> Rsqrt(const Tensor& a) {
  return FromOutput(
      "RsqrtBackward", tensor::Rsqrt, a,
      [](const Tensor& out, const Tensor& dout) -> absl::StatusOr<Tensor> {
        ASSIGN_OR_RETURN(Tensor cube, tensor::PowScalar(out, 3));
        ASSIGN_OR_RETURN(Tensor product, tensor::Mul(dout, cube));
        return tensor::MulScalar(product, -0.5);
      });
}

absl::StatusOr<Tensor> Abs(const Tensor& a) {
  return FromInput(
      "AbsBackward", tensor::Abs, a,
      [](const Tensor& x, const Tensor& dout) -> absl::StatusOr<Tensor> {
        ASSIGN_OR_RETURN(Tensor sign, tensor::Sign(x));
        return tensor::Mul(dout, sign);
      });
}

absl::StatusOr<Tensor> Sin(const Tensor& a) {
  return FromInput(
      "SinBackward", tensor::Sin, a,
      [](const Tensor& x, const Tensor& dout) -> absl::StatusOr<Tensor> {
        ASSIGN_OR_RETURN(Tensor cos, tensor::Cos(x));
        return tensor::Mul(dout, cos);
      });
}

absl::StatusOr<Tensor> Cos(const Tensor& a) {
  return FromInput(
      "CosBackward", tensor::Cos, a,
      [](const Tensor& x, const Tensor& dout) -> absl::StatusOr<Tensor> {
        ASSIGN_OR_RETURN(Tensor sin, tensor::Sin(x));
        ASSIGN_OR_RETURN(Tensor product, tensor::Mul(dout, sin));
        return tensor::Neg(product);
      });
}

absl::StatusOr<Tensor> Reciprocal(const Tensor& a) {
  return FromOutput(
      "ReciprocalBackward", tensor::Reciprocal, a,
      [](const Tensor& out, const Tensor& dout) -> absl::StatusOr<Tensor> {
        ASSIGN_OR_RETURN(Tensor square, tensor::Square(out));
        ASSIGN_OR_RETURN(Tensor product, tensor::Mul(dout, square));
        return tensor::Neg(product);
      });
}

absl::StatusOr<Tensor> Square(const Tensor& a) {
  return FromInput(
      "SquareBackward", tensor::Square, a,
      [](const Tensor& x, const Tensor& dout) -> absl::StatusOr<Tensor> {
        ASSIGN_OR_RETURN(Tensor half, tensor::Mul(dout, x));
        return tensor::MulScalar(half, 2);
      });
}

absl::StatusOr<Tensor> Relu(const Tensor& a) {
  return FromOutput("ReluBackward", tensor::Relu, a, tensor::ReluGrad);
}

absl::StatusOr<Tensor> Sigmoid(const Tensor& a) {
  return FromOutput("SigmoidBackward", tensor::Sigmoid, a, tensor::SigmoidGrad);
}

absl::StatusOr<Tensor> Tanh(const Tensor& a) {
  return FromOutput("TanhBackward", tensor::Tanh, a, tensor::TanhGrad);
}

absl::StatusOr<Tensor> Gelu(const Tensor& a) {
  return FromInput("GeluBackward", tensor::Gelu, a, tensor::GeluGrad);
}

absl::StatusOr<Tensor> Silu(const Tensor& a) {
  return FromInput("SiluBackward", tensor::Silu, a, tensor::SiluGrad);
}

}  // namespace hawser::autograd
