#include "tensor/ops/elementwise.h"

#include <cmath>
#include <limits>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "tensor/backend/backend.h"
#include "tensor/backend/kernel_types.h"
#include "tensor/dtype.h"
#include "tensor/ops/operands.h"
#include "tensor/recording_mode.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::tensor {
namespace {

// Which dtypes an operation does, beside floating point.
enum class Integers : bool { kNo, kYes };

absl::Status CheckArithmetic(std::string_view name, Integers integers,
                             Operands operands) {
  if (integers == Integers::kNo) return CheckFloating(name, operands);
  RETURN_IF_ERROR(CheckSameDType(name, operands));
  if (operands.begin()->tensor.dtype() == DType::kBool) [[unlikely]] {
    return BadOperands(name, "not for bool", operands);
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensor> RunUnary(std::string_view name, UnaryOp op,
                                const Tensor& a,
                                Integers integers = Integers::kNo) {
  RETURN_IF_ERROR(CheckArithmetic(name, integers, {{"a", a}}));
  ASSIGN_OR_RETURN(Backend* const backend, BackendFor(a.device()));
  ASSIGN_OR_RETURN(Tensor out,
                   Tensor::TryEmpty(a.shape(), {a.dtype(), a.device()}));
  RETURN_IF_ERROR(backend->Unary(op, a, out));
  return out;
}

// The shape that `a` and `b` broadcast to.
absl::StatusOr<Shape> Broadcast(std::string_view name, const Tensor& a,
                                const Tensor& b) {
  absl::StatusOr<Shape> shape = BroadcastShapes(a.shape(), b.shape());
  if (!shape.ok()) [[unlikely]] {
    return BadOperands(name, "shapes do not broadcast", {{"a", a}, {"b", b}});
  }
  return shape;
}

// An uninitialised tensor for the result of an operation on `a` and `b`.
absl::StatusOr<Tensor> NewResult(std::string_view name, const Tensor& a,
                                 const Tensor& b) {
  if (a.shape() == b.shape()) {
    return Tensor::TryEmpty(a.shape(), {a.dtype(), a.device()});
  }
  ASSIGN_OR_RETURN(const Shape shape, Broadcast(name, a, b));
  return Tensor::TryEmpty(shape, {a.dtype(), a.device()});
}

absl::StatusOr<Tensor> RunBinary(std::string_view name, BinaryOp op,
                                 const Tensor& a, const Tensor& b,
                                 Integers integers) {
  RETURN_IF_ERROR(CheckArithmetic(name, integers, {{"a", a}, {"b", b}}));
  ASSIGN_OR_RETURN(Backend* const backend, BackendFor(a.device()));
  ASSIGN_OR_RETURN(Tensor out, NewResult(name, a, b));
  RETURN_IF_ERROR(backend->Binary(op, a, b, out));
  return out;
}

// Whether `value` is an element of `dtype`.
bool Holds(DType dtype, double value) {
  if (IsFloatingPoint(dtype)) return true;
  if (value != std::trunc(value)) return false;
  switch (dtype) {
    case DType::kI32:
      return value >= std::numeric_limits<int32_t>::min() &&
             value <= std::numeric_limits<int32_t>::max();
    case DType::kU8:
      return value >= 0 && value <= 255;
    default:  // 2^63 is the first double beyond an i64.
      return value >= -0x1p63 && value < 0x1p63;
  }
}

absl::StatusOr<Tensor> RunScalar(std::string_view name, BinaryOp op,
                                 const Tensor& a, double b, Integers integers) {
  RETURN_IF_ERROR(CheckArithmetic(name, integers, {{"a", a}}));
  if (!Holds(a.dtype(), b)) [[unlikely]] {
    return BadOperands(name, absl::StrCat(b, " is no element of the dtype"),
                       {{"a", a}});
  }
  ASSIGN_OR_RETURN(Backend* const backend, BackendFor(a.device()));
  ASSIGN_OR_RETURN(Tensor out,
                   Tensor::TryEmpty(a.shape(), {a.dtype(), a.device()}));
  RETURN_IF_ERROR(backend->BinaryScalar(op, a, b, out));
  return out;
}

absl::StatusOr<Tensor> RunCompare(std::string_view name, CompareOp op,
                                  const Tensor& a, const Tensor& b) {
  const RawOperationsScope raw;  // Its result has no gradient.
  RETURN_IF_ERROR(CheckSameDType(name, {{"a", a}, {"b", b}}));
  const bool ordered = op != CompareOp::kEq && op != CompareOp::kNe;
  if (ordered && a.dtype() == DType::kBool) [[unlikely]] {
    return BadOperands(name, "bool has no order", {{"a", a}, {"b", b}});
  }
  ASSIGN_OR_RETURN(Backend* const backend, BackendFor(a.device()));
  ASSIGN_OR_RETURN(const Shape shape, Broadcast(name, a, b));
  ASSIGN_OR_RETURN(Tensor out,
                   Tensor::TryEmpty(shape, {DType::kBool, a.device()}));
  RETURN_IF_ERROR(backend->Compare(op, a, b, out));
  return out;
}

absl::StatusOr<Tensor> RunGradient(std::string_view name, BinaryOp op,
                                   std::string_view saved_name,
                                   const Tensor& saved, const Tensor& dout) {
  if (saved.defined() && dout.defined() && saved.shape() != dout.shape())
      [[unlikely]] {
    return BadOperands(name, "shapes differ",
                       {{saved_name, saved}, {"dout", dout}});
  }
  return RunBinary(name, op, saved, dout, Integers::kNo);
}

}  // namespace

absl::StatusOr<Tensor> Add(const Tensor& a, const Tensor& b) {
  return RunBinary("Add", BinaryOp::kAdd, a, b, Integers::kYes);
}
absl::StatusOr<Tensor> Sub(const Tensor& a, const Tensor& b) {
  return RunBinary("Sub", BinaryOp::kSub, a, b, Integers::kYes);
}
absl::StatusOr<Tensor> AddScaled(const Tensor& a, const Tensor& b,
                                 double alpha) {
  constexpr std::string_view kName = "AddScaled";
  RETURN_IF_ERROR(CheckFloating(kName, {{"a", a}, {"b", b}}));
  ASSIGN_OR_RETURN(Backend* const backend, BackendFor(a.device()));
  ASSIGN_OR_RETURN(Tensor out, NewResult(kName, a, b));
  RETURN_IF_ERROR(backend->AddScaled(a, b, alpha, out));
  return out;
}
absl::StatusOr<Tensor> Mul(const Tensor& a, const Tensor& b) {
  return RunBinary("Mul", BinaryOp::kMul, a, b, Integers::kYes);
}
absl::StatusOr<Tensor> Div(const Tensor& a, const Tensor& b) {
  return RunBinary("Div", BinaryOp::kDiv, a, b, Integers::kNo);
}
absl::StatusOr<Tensor> Maximum(const Tensor& a, const Tensor& b) {
  return RunBinary("Maximum", BinaryOp::kMaximum, a, b, Integers::kYes);
}
absl::StatusOr<Tensor> Minimum(const Tensor& a, const Tensor& b) {
  return RunBinary("Minimum", BinaryOp::kMinimum, a, b, Integers::kYes);
}
absl::StatusOr<Tensor> Pow(const Tensor& a, const Tensor& b) {
  return RunBinary("Pow", BinaryOp::kPow, a, b, Integers::kNo);
}

absl::StatusOr<Tensor> AddScalar(const Tensor& a, double b) {
  return RunScalar("AddScalar", BinaryOp::kAdd, a, b, Integers::kYes);
}
absl::StatusOr<Tensor> MulScalar(const Tensor& a, double b) {
  return RunScalar("MulScalar", BinaryOp::kMul, a, b, Integers::kYes);
}
absl::StatusOr<Tensor> PowScalar(const Tensor& a, double b) {
  return RunScalar("PowScalar", BinaryOp::kPow, a, b, Integers::kNo);
}

absl::StatusOr<Tensor> Eq(const Tensor& a, const Tensor& b) {
  return RunCompare("Eq", CompareOp::kEq, a, b);
}
absl::StatusOr<Tensor> Ne(const Tensor& a, const Tensor& b) {
  return RunCompare("Ne", CompareOp::kNe, a, b);
}
absl::StatusOr<Tensor> Lt(const Tensor& a, const Tensor& b) {
  return RunCompare("Lt", CompareOp::kLt, a, b);
}
absl::StatusOr<Tensor> Le(const Tensor& a, const Tensor& b) {
  return RunCompare("Le", CompareOp::kLe, a, b);
}
absl::StatusOr<Tensor> Gt(const Tensor& a, const Tensor& b) {
  return RunCompare("Gt", CompareOp::kGt, a, b);
}
absl::StatusOr<Tensor> Ge(const Tensor& a, const Tensor& b) {
  return RunCompare("Ge", CompareOp::kGe, a, b);
}

absl::StatusOr<Tensor> Where(const Tensor& condition, const Tensor& a,
                             const Tensor& b) {
  const Operands operands = {{"condition", condition}, {"a", a}, {"b", b}};
  RETURN_IF_ERROR(CheckOperands("Where", operands));
  if (condition.dtype() != DType::kBool) [[unlikely]] {
    return BadOperands("Where", "the condition must be bool", operands);
  }
  if (a.dtype() != b.dtype()) [[unlikely]] {
    return BadOperands("Where", "dtypes differ", operands);
  }
  ASSIGN_OR_RETURN(Backend* const backend, BackendFor(a.device()));
  ASSIGN_OR_RETURN(const Shape values, Broadcast("Where", a, b));
  absl::StatusOr<Shape> shape = BroadcastShapes(values, condition.shape());
  if (!shape.ok()) [[unlikely]] {
    return BadOperands("Where", "shapes do not broadcast", operands);
  }
  ASSIGN_OR_RETURN(Tensor out,
                   Tensor::TryEmpty(*shape, {a.dtype(), a.device()}));
  RETURN_IF_ERROR(backend->Where(condition, a, b, out));
  return out;
}

absl::StatusOr<Tensor> Neg(const Tensor& a) {
  return RunUnary("Neg", UnaryOp::kNeg, a, Integers::kYes);
}
absl::StatusOr<Tensor> Exp(const Tensor& a) {
  return RunUnary("Exp", UnaryOp::kExp, a);
}
absl::StatusOr<Tensor> Log(const Tensor& a) {
  return RunUnary("Log", UnaryOp::kLog, a);
}
absl::StatusOr<Tensor> Sqrt(const Tensor& a) {
  return RunUnary("Sqrt", UnaryOp::kSqrt, a);
}
absl::StatusOr<Tensor> Rsqrt(const Tensor& a) {
  return RunUnary("Rsqrt", UnaryOp::kRsqrt, a);
}
absl::StatusOr<Tensor> Abs(const Tensor& a) {
  return RunUnary("Abs", UnaryOp::kAbs, a, Integers::kYes);
}
absl::StatusOr<Tensor> Sign(const Tensor& a) {
  return RunUnary("Sign", UnaryOp::kSign, a, Integers::kYes);
}
absl::StatusOr<Tensor> Sin(const Tensor& a) {
  return RunUnary("Sin", UnaryOp::kSin, a);
}
absl::StatusOr<Tensor> Cos(const Tensor& a) {
  return RunUnary("Cos", UnaryOp::kCos, a);
}
absl::StatusOr<Tensor> Reciprocal(const Tensor& a) {
  return RunUnary("Reciprocal", UnaryOp::kReciprocal, a);
}
absl::StatusOr<Tensor> Square(const Tensor& a) {
  return RunUnary("Square", UnaryOp::kSquare, a, Integers::kYes);
}
absl::StatusOr<Tensor> Relu(const Tensor& a) {
  return RunUnary("Relu", UnaryOp::kRelu, a, Integers::kYes);
}
absl::StatusOr<Tensor> Sigmoid(const Tensor& a) {
  return RunUnary("Sigmoid", UnaryOp::kSigmoid, a);
}
absl::StatusOr<Tensor> Tanh(const Tensor& a) {
  return RunUnary("Tanh", UnaryOp::kTanh, a);
}
absl::StatusOr<Tensor> Gelu(const Tensor& a) {
  return RunUnary("Gelu", UnaryOp::kGelu, a);
}
absl::StatusOr<Tensor> Silu(const Tensor& a) {
  return RunUnary("Silu", UnaryOp::kSilu, a);
}

absl::StatusOr<Tensor> ReluGrad(const Tensor& out, const Tensor& dout) {
  return RunGradient("ReluGrad", BinaryOp::kReluGrad, "out", out, dout);
}
absl::StatusOr<Tensor> SigmoidGrad(const Tensor& out, const Tensor& dout) {
  return RunGradient("SigmoidGrad", BinaryOp::kSigmoidGrad, "out", out, dout);
}
absl::StatusOr<Tensor> TanhGrad(const Tensor& out, const Tensor& dout) {
  return RunGradient("TanhGrad", BinaryOp::kTanhGrad, "out", out, dout);
}
absl::StatusOr<Tensor> GeluGrad(const Tensor& x, const Tensor& dout) {
  return RunGradient("GeluGrad", BinaryOp::kGeluGrad, "x", x, dout);
}
absl::StatusOr<Tensor> SiluGrad(const Tensor& x, const Tensor& dout) {
  return RunGradient("SiluGrad", BinaryOp::kSiluGrad, "x", x, dout);
}

}  // namespace hawser::tensor
