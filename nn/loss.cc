#include "nn/loss.h"

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "autograd/function.h"
#include "autograd/ops/elementwise.h"
#include "nn/reduction.h"
#include "tensor/dtype.h"
#include "tensor/ops/elementwise.h"
#include "tensor/ops/reduce.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::nn {
namespace {

using tensor::DType;

absl::Status CheckPair(const char* loss, const Tensor& x, const Tensor& y) {
  if (x.defined() && y.defined() && x.shape() == y.shape() &&
      x.dtype() == y.dtype() && IsFloatingPoint(x.dtype())) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      loss,
      ": the two arguments must have one shape and one floating-point dtype, "
      "not ",
      x.defined() ? x.ToString() : "undefined", " and ",
      y.defined() ? y.ToString() : "undefined"));
}

Tensor ScalarLike(double value, const Tensor& like) {
  return Tensor::Scalar(value, {like.dtype(), like.device()});
}

// max(log(a), -100)
absl::StatusOr<Tensor> BoundedLog(const Tensor& a) {
  ASSIGN_OR_RETURN(const Tensor log, tensor::Log(a));
  return tensor::Maximum(log, ScalarLike(-100, a));
}

// 1 - a
absl::StatusOr<Tensor> OneMinus(const Tensor& a) {
  ASSIGN_OR_RETURN(const Tensor negative, tensor::Neg(a));
  return tensor::AddScalar(negative, 1);
}

// Maps probabilities x and targets y to losses.
class BceFunction final : public autograd::Function {
 public:
  std::string_view name() const override { return "BceLoss"; }

  absl::StatusOr<std::vector<Tensor>> Forward(
      autograd::FunctionContext& context,
      std::span<const Tensor> inputs) override {
    context.SaveForBackward({inputs[0], inputs[1]});
    const Tensor& y = inputs[1];
    ASSIGN_OR_RETURN(const Tensor log, BoundedLog(inputs[0]));
    ASSIGN_OR_RETURN(const Tensor rest, OneMinus(inputs[0]));
    ASSIGN_OR_RETURN(const Tensor rest_log, BoundedLog(rest));
    // -(rest_log + y (log - rest_log))
    ASSIGN_OR_RETURN(const Tensor difference, tensor::Sub(log, rest_log));
    ASSIGN_OR_RETURN(const Tensor weighted, tensor::Mul(y, difference));
    ASSIGN_OR_RETURN(const Tensor sum, tensor::Add(rest_log, weighted));
    ASSIGN_OR_RETURN(Tensor loss, tensor::Neg(sum));
    return std::vector<Tensor>{std::move(loss)};
  }

  // (x - y) / max(x (1 - x), 1e-12)
  absl::StatusOr<std::vector<Tensor>> Backward(
      const autograd::FunctionContext& context,
      std::vector<Tensor> output_gradients) override {
    ASSIGN_OR_RETURN(const std::vector<Tensor> saved, context.saved_tensors());
    // In f16 the minimal divisor would be rounded to 0.
    const DType dtype = SumDType(saved[0].dtype());
    ASSIGN_OR_RETURN(const Tensor x, saved[0].To(dtype));
    ASSIGN_OR_RETURN(const Tensor y, saved[1].To(dtype));
    ASSIGN_OR_RETURN(const Tensor dloss, output_gradients[0].To(dtype));
    ASSIGN_OR_RETURN(const Tensor error, tensor::Sub(x, y));
    ASSIGN_OR_RETURN(const Tensor rest, OneMinus(x));
    ASSIGN_OR_RETURN(const Tensor variance, tensor::Mul(x, rest));
    ASSIGN_OR_RETURN(const Tensor divisor,
                     tensor::Maximum(variance, ScalarLike(1e-12, x)));
    ASSIGN_OR_RETURN(const Tensor slope, tensor::Div(error, divisor));
    ASSIGN_OR_RETURN(const Tensor wide_dx, tensor::Mul(slope, dloss));
    ASSIGN_OR_RETURN(Tensor dx, wide_dx.To(saved[0].dtype()));
    return std::vector<Tensor>{std::move(dx), Tensor()};
  }
};

// Maps logits x, targets y and the weight of positives (or undefined) to
// losses. Implemented as one function, since the terms of its stable form are
// not differentiable at x = 0, although their sum is.
class BceWithLogitsFunction final : public autograd::Function {
 public:
  std::string_view name() const override { return "BceWithLogitsLoss"; }

  // (1 - y) x + (1 + (weight - 1) y) (log(1 + exp(-|x|)) + max(-x, 0))
  absl::StatusOr<std::vector<Tensor>> Forward(
      autograd::FunctionContext& context,
      std::span<const Tensor> inputs) override {
    context.SaveForBackward({inputs[0], inputs[1], inputs[2]});
    const Tensor& x = inputs[0];
    const Tensor& y = inputs[1];
    ASSIGN_OR_RETURN(const Tensor magnitude, tensor::Abs(x));
    ASSIGN_OR_RETURN(const Tensor minus, tensor::Neg(magnitude));
    ASSIGN_OR_RETURN(const Tensor exp, tensor::Exp(minus));
    ASSIGN_OR_RETURN(const Tensor one_more, tensor::AddScalar(exp, 1));
    ASSIGN_OR_RETURN(const Tensor log, tensor::Log(one_more));
    ASSIGN_OR_RETURN(const Tensor negative, tensor::Neg(x));
    ASSIGN_OR_RETURN(const Tensor hinge, tensor::Relu(negative));
    ASSIGN_OR_RETURN(Tensor softplus, tensor::Add(log, hinge));
    if (inputs[2].defined()) {
      ASSIGN_OR_RETURN(const Tensor excess, tensor::AddScalar(inputs[2], -1));
      ASSIGN_OR_RETURN(const Tensor weighted, tensor::Mul(excess, y));
      ASSIGN_OR_RETURN(const Tensor weight, tensor::AddScalar(weighted, 1));
      ASSIGN_OR_RETURN(softplus, tensor::Mul(softplus, weight));
    }
    ASSIGN_OR_RETURN(const Tensor rest, OneMinus(y));
    ASSIGN_OR_RETURN(const Tensor linear, tensor::Mul(rest, x));
    ASSIGN_OR_RETURN(Tensor loss, tensor::Add(linear, softplus));
    return std::vector<Tensor>{std::move(loss)};
  }

  // (1 - y + weight y) sigmoid(x) - weight y
  absl::StatusOr<std::vector<Tensor>> Backward(
      const autograd::FunctionContext& context,
      std::vector<Tensor> output_gradients) override {
    ASSIGN_OR_RETURN(const std::vector<Tensor> saved, context.saved_tensors());
    ASSIGN_OR_RETURN(const Tensor sigmoid, tensor::Sigmoid(saved[0]));
    Tensor slope;
    if (saved[2].defined()) {
      ASSIGN_OR_RETURN(const Tensor positive, tensor::Mul(saved[2], saved[1]));
      ASSIGN_OR_RETURN(const Tensor rest, OneMinus(saved[1]));
      ASSIGN_OR_RETURN(const Tensor both, tensor::Add(positive, rest));
      ASSIGN_OR_RETURN(const Tensor product, tensor::Mul(both, sigmoid));
      ASSIGN_OR_RETURN(slope, tensor::Sub(product, positive));
    } else {
      ASSIGN_OR_RETURN(slope, tensor::Sub(sigmoid, saved[1]));
    }
    ASSIGN_OR_RETURN(Tensor dx, tensor::Mul(slope, output_gradients[0]));
    return std::vector<Tensor>{std::move(dx), Tensor(), Tensor()};
  }
};

absl::StatusOr<Tensor> ApplyLoss(std::unique_ptr<autograd::Function> function,
                                 std::vector<Tensor> inputs,
                                 Reduction reduction) {
  ASSIGN_OR_RETURN(const std::vector<Tensor> losses,
                   autograd::Apply(std::move(function), std::move(inputs)));
  return Reduce(losses[0], reduction);
}

}  // namespace

absl::StatusOr<Tensor> MseLoss(const Tensor& x, const Tensor& y,
                               Reduction reduction) {
  RETURN_IF_ERROR(CheckPair("MseLoss", x, y));
  ASSIGN_OR_RETURN(const Tensor difference, autograd::Sub(x, y.Detach()));
  ASSIGN_OR_RETURN(const Tensor square, autograd::Square(difference));
  return Reduce(square, reduction);
}

absl::StatusOr<Tensor> L1Loss(const Tensor& x, const Tensor& y,
                              Reduction reduction) {
  RETURN_IF_ERROR(CheckPair("L1Loss", x, y));
  ASSIGN_OR_RETURN(const Tensor difference, autograd::Sub(x, y.Detach()));
  ASSIGN_OR_RETURN(const Tensor distance, autograd::Abs(difference));
  return Reduce(distance, reduction);
}

absl::StatusOr<Tensor> SmoothL1Loss(const Tensor& x, const Tensor& y,
                                    double beta, Reduction reduction) {
  RETURN_IF_ERROR(CheckPair("SmoothL1Loss", x, y));
  if (!(beta > 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("SmoothL1Loss: beta must be above 0, not ", beta));
  }
  ASSIGN_OR_RETURN(const Tensor difference, autograd::Sub(x, y.Detach()));
  ASSIGN_OR_RETURN(const Tensor distance, autograd::Abs(difference));
  ASSIGN_OR_RETURN(const Tensor square, autograd::Square(difference));
  ASSIGN_OR_RETURN(const Tensor near, autograd::MulScalar(square, 0.5 / beta));
  ASSIGN_OR_RETURN(const Tensor far,
                   autograd::AddScalar(distance, -0.5 * beta));
  ASSIGN_OR_RETURN(const Tensor is_near,
                   tensor::Lt(distance, ScalarLike(beta, x)));
  ASSIGN_OR_RETURN(const Tensor loss, autograd::Where(is_near, near, far));
  return Reduce(loss, reduction);
}

absl::StatusOr<Tensor> HuberLoss(const Tensor& x, const Tensor& y, double delta,
                                 Reduction reduction) {
  RETURN_IF_ERROR(CheckPair("HuberLoss", x, y));
  if (!(delta > 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("HuberLoss: delta must be above 0, not ", delta));
  }
  ASSIGN_OR_RETURN(const Tensor loss, SmoothL1Loss(x, y, delta, reduction));
  return autograd::MulScalar(loss, delta);
}

absl::StatusOr<Tensor> BceLoss(const Tensor& x, const Tensor& y,
                               Reduction reduction) {
  RETURN_IF_ERROR(CheckPair("BceLoss", x, y));
  if (x.num_elements() > 0) {
    ASSIGN_OR_RETURN(const Tensor smallest, tensor::Min(x.Detach()));
    ASSIGN_OR_RETURN(const Tensor largest, tensor::Max(x.Detach()));
    ASSIGN_OR_RETURN(const double low, smallest.item<double>());
    ASSIGN_OR_RETURN(const double high, largest.item<double>());
    if (!(low >= 0 && high <= 1)) {
      return absl::InvalidArgumentError(
          absl::StrCat("BceLoss: probabilities must be in [0, 1], not within [",
                       low, ", ", high, "]; use BceWithLogitsLoss for logits"));
    }
  }
  return ApplyLoss(std::make_unique<BceFunction>(), {x, y.Detach()}, reduction);
}

absl::StatusOr<Tensor> BceWithLogitsLoss(const Tensor& logits, const Tensor& y,
                                         Reduction reduction,
                                         const Tensor& positive_weight) {
  RETURN_IF_ERROR(CheckPair("BceWithLogitsLoss", logits, y));
  if (positive_weight.defined()) {
    const auto joint =
        tensor::BroadcastShapes(positive_weight.shape(), y.shape());
    if (!joint.ok() || *joint != y.shape()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "BceWithLogitsLoss: positive_weight ", positive_weight.ToString(),
          " does not broadcast to ", y.shape().ToString()));
    }
  }
  return ApplyLoss(
      std::make_unique<BceWithLogitsFunction>(),
      {logits, y.Detach(),
       positive_weight.defined() ? positive_weight.Detach() : Tensor()},
      reduction);
}

absl::StatusOr<Tensor> KlDivLoss(const Tensor& x, const Tensor& y,
                                 Reduction reduction) {
  RETURN_IF_ERROR(CheckPair("KlDivLoss", x, y));
  const Tensor target = y.Detach();
  // y log y, which is 0 for y = 0.
  ASSIGN_OR_RETURN(const Tensor is_zero,
                   tensor::Eq(target, ScalarLike(0, target)));
  ASSIGN_OR_RETURN(const Tensor positive,
                   tensor::Where(is_zero, ScalarLike(1, target), target));
  ASSIGN_OR_RETURN(const Tensor log, tensor::Log(positive));
  ASSIGN_OR_RETURN(const Tensor constant, tensor::Mul(target, log));
  ASSIGN_OR_RETURN(const Tensor cross, autograd::Mul(target, x));
  ASSIGN_OR_RETURN(const Tensor loss, autograd::Sub(constant, cross));
  return Reduce(loss, reduction);
}

}  // namespace hawser::nn
