#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/gather.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/softmax.h"
#include "autograd/ops/view.h"
#include "nn/loss.h"
#include "tensor/dtype.h"
#include "tensor/ops/elementwise.h"
#include "tensor/ops/gather.h"
#include "tensor/ops/reduce.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

// Losses of class labels: CrossEntropyLoss and NllLoss.
namespace hawser::nn {
namespace {

using tensor::DType;
using tensor::Shape;

absl::Status CheckClassLoss(const char* loss, const Tensor& x,
                            const Tensor& labels,
                            const ClassLossOptions& options) {
  Shape expected;
  for (int i = 0; x.defined() && i < x.rank(); ++i) {
    if (i != 1) expected.Append(x.dim(i));
  }
  if (!x.defined() || x.rank() < 2 || !labels.defined() ||
      labels.dtype() != DType::kI64 || labels.shape() != expected) {
    return absl::InvalidArgumentError(absl::StrCat(
        loss, ": scores must be [n, c, ...] and labels i64[n, ...], not ",
        x.defined() ? x.ToString() : "undefined", " and ",
        labels.defined() ? labels.ToString() : "undefined"));
  }
  const Tensor& weights = options.class_weights;
  if (weights.defined() &&
      (weights.shape() != Shape{x.dim(1)} || weights.dtype() != x.dtype())) {
    return absl::InvalidArgumentError(absl::StrCat(
        loss, ": class_weights must be ", std::string(DTypeName(x.dtype())),
        "[", x.dim(1), "], not ", weights.ToString()));
  }
  if (!(options.label_smoothing >= 0 && options.label_smoothing <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat(loss, ": label_smoothing must be in [0, 1], not ",
                     options.label_smoothing));
  }
  return absl::OkStatus();
}

Tensor ScalarLike(double value, const Tensor& like) {
  return Tensor::Scalar(value, {like.dtype(), like.device()});
}

// Adds advice to the error if a label is not a class.
absl::StatusOr<Tensor> ExplainLabel(const char* loss,
                                    absl::StatusOr<Tensor> result) {
  if (!absl::IsOutOfRange(result.status())) return result;
  return absl::OutOfRangeError(absl::StrCat(
      loss, ": ", result.status().message(),
      "; set ClassLossOptions::ignored_label to ignore a label that is not a "
      "class: to -100 for labels made for PyTorch"));
}

// Labels, prepared for the computation of losses.
struct Labels {
  Tensor classes;  // The labels; 0 where ignored.
  Tensor counted;  // bool, false where ignored; undefined if all labels count.
  // The weight of each label in a mean; 0 where ignored. Dtype of the scores.
  Tensor weights;
};

absl::StatusOr<Labels> ReadLabels(const Tensor& scores, const Tensor& labels,
                                  const ClassLossOptions& options) {
  Labels result;
  const tensor::TensorOptions like{scores.dtype(), scores.device()};
  if (options.ignored_label.has_value()) {
    const tensor::TensorOptions label_like{DType::kI64, labels.device()};
    ASSIGN_OR_RETURN(result.counted,
                     tensor::Ne(labels, Tensor::FromVector<int64_t>(
                                            {*options.ignored_label}, {})));
    ASSIGN_OR_RETURN(
        result.classes,
        tensor::Where(result.counted, labels, Tensor::Scalar(0, label_like)));
    ASSIGN_OR_RETURN(result.weights, result.counted.To(scores.dtype()));
  } else {
    result.classes = labels;
    result.weights = Tensor::Ones(labels.shape(), like);
  }
  if (options.class_weights.defined()) {
    ASSIGN_OR_RETURN(const Tensor flat, result.classes.Reshape({-1}));
    ASSIGN_OR_RETURN(
        const Tensor chosen,
        tensor::IndexSelect(options.class_weights.Detach(), 0, flat));
    ASSIGN_OR_RETURN(const Tensor shaped, chosen.Reshape(labels.shape()));
    ASSIGN_OR_RETURN(result.weights, tensor::Mul(result.weights, shaped));
  }
  return result;
}

// `losses`, with 0 and without a gradient where the label is ignored. Scores
// may be infinite there.
absl::StatusOr<Tensor> OfCounted(const Tensor& losses, const Labels& labels) {
  if (!labels.counted.defined()) return losses;
  return autograd::Where(labels.counted, losses, ScalarLike(0, losses));
}

// The loss of each label for a target spread evenly over the classes, times the
// number of classes.
absl::StatusOr<Tensor> EvenLoss(const Tensor& log_probabilities,
                                const Labels& labels,
                                const ClassLossOptions& options) {
  Tensor weighted = log_probabilities;
  if (options.class_weights.defined()) {
    Shape shape;
    for (int i = 0; i < log_probabilities.rank(); ++i) {
      shape.Append(i == 1 ? log_probabilities.dim(1) : 1);
    }
    ASSIGN_OR_RETURN(const Tensor weights,
                     options.class_weights.Detach().Reshape(shape));
    ASSIGN_OR_RETURN(weighted, autograd::Mul(log_probabilities, weights));
  }
  ASSIGN_OR_RETURN(const Tensor sum, autograd::Sum(weighted, {1}));
  ASSIGN_OR_RETURN(const Tensor counted, OfCounted(sum, labels));
  return autograd::Neg(counted);
}

// sum / total. If the total is 0 the gradient is 0.
absl::StatusOr<Tensor> MeanOf(const Tensor& sum, const Tensor& total) {
  ASSIGN_OR_RETURN(const Tensor is_empty,
                   tensor::Eq(total, ScalarLike(0, total)));
  ASSIGN_OR_RETURN(const Tensor divisor,
                   tensor::Where(is_empty, ScalarLike(1, total), total));
  ASSIGN_OR_RETURN(const Tensor mean, autograd::Div(sum, divisor));
  ASSIGN_OR_RETURN(const Tensor undefined, tensor::Div(sum.Detach(), total));
  return autograd::Where(is_empty, undefined, mean);
}

absl::StatusOr<Tensor> FromLogProbabilities(const Tensor& log_probabilities,
                                            const Tensor& labels,
                                            const ClassLossOptions& options) {
  ASSIGN_OR_RETURN(const Labels read,
                   ReadLabels(log_probabilities, labels, options));
  ASSIGN_OR_RETURN(const Tensor index, read.classes.Unsqueeze(1));
  ASSIGN_OR_RETURN(const Tensor column,
                   autograd::Gather(log_probabilities, 1, index));
  ASSIGN_OR_RETURN(const Tensor chosen, autograd::Squeeze(column, 1));
  ASSIGN_OR_RETURN(const Tensor weighted, autograd::Mul(chosen, read.weights));
  ASSIGN_OR_RETURN(const Tensor counted, OfCounted(weighted, read));
  ASSIGN_OR_RETURN(Tensor loss, autograd::Neg(counted));
  if (options.label_smoothing > 0) {
    const double share = options.label_smoothing;
    const double classes = static_cast<double>(log_probabilities.dim(1));
    ASSIGN_OR_RETURN(const Tensor even,
                     EvenLoss(log_probabilities, read, options));
    ASSIGN_OR_RETURN(const Tensor own, autograd::MulScalar(loss, 1 - share));
    ASSIGN_OR_RETURN(const Tensor spread,
                     autograd::MulScalar(even, share / classes));
    ASSIGN_OR_RETURN(loss, autograd::Add(own, spread));
  }
  if (options.reduction == Reduction::kNone) return loss;
  ASSIGN_OR_RETURN(const Tensor sum, autograd::Sum(loss));
  if (options.reduction == Reduction::kSum) return sum;
  ASSIGN_OR_RETURN(const Tensor total, tensor::Sum(read.weights));
  return MeanOf(sum, total);
}

}  // namespace

absl::StatusOr<Tensor> CrossEntropyLoss(const Tensor& logits,
                                        const Tensor& labels,
                                        const ClassLossOptions& options) {
  RETURN_IF_ERROR(CheckClassLoss("CrossEntropyLoss", logits, labels, options));
  if (logits.rank() == 2 && options.reduction == Reduction::kMean &&
      !options.ignored_label.has_value() && !options.class_weights.defined() &&
      options.label_smoothing == 0) {
    return ExplainLabel("CrossEntropyLoss",
                        autograd::SoftmaxCrossEntropy(logits, labels));
  }
  ASSIGN_OR_RETURN(const Tensor log_probabilities,
                   autograd::LogSoftmax(logits, 1));
  return ExplainLabel("CrossEntropyLoss",
                      FromLogProbabilities(log_probabilities, labels, options));
}

absl::StatusOr<Tensor> NllLoss(const Tensor& log_probabilities,
                               const Tensor& labels,
                               const ClassLossOptions& options) {
  RETURN_IF_ERROR(
      CheckClassLoss("NllLoss", log_probabilities, labels, options));
  if (options.label_smoothing != 0) {
    return absl::InvalidArgumentError(
        "NllLoss: label_smoothing is an option of CrossEntropyLoss");
  }
  return ExplainLabel("NllLoss",
                      FromLogProbabilities(log_probabilities, labels, options));
}

}  // namespace hawser::nn
