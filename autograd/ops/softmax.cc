#include "autograd/ops/softmax.h"

#include <array>
#include <span>
#include <string_view>
#include <utility>

#include "async/status_macros.h"
#include "autograd/internal/record.h"
#include "tensor/ops/softmax.h"
#include "tensor/recording_mode.h"

namespace hawser::autograd {
namespace {

using internal::InputGradients;
using internal::Keep;
using internal::MustRecord;
using internal::Record;
using Inputs1 = std::array<const Tensor*, 1>;
using Kept = std::span<const Tensor>;

using GradientFunction = absl::StatusOr<Tensor> (*)(const Tensor& y,
                                                    const Tensor& dy,
                                                    int64_t dim);

Tensor RecordOfOutput(std::string_view name, Tensor out, const Tensor& x,
                      int64_t dim, GradientFunction gradient) {
  return Record(name, out, Inputs1{&x}, std::array{Keep::Output(out)},
                [dim, gradient](const Tensor& dout, Kept kept,
                                InputGradients& gradients) -> absl::Status {
                  ASSIGN_OR_RETURN(gradients[0], gradient(kept[0], dout, dim));
                  return absl::OkStatus();
                });
}

}  // namespace

absl::StatusOr<Tensor> Softmax(const Tensor& x, int64_t dim) {
  const tensor::RawOperationsScope raw;
  ASSIGN_OR_RETURN(Tensor out, tensor::Softmax(x, dim));
  if (!MustRecord(x)) return out;
  return RecordOfOutput("SoftmaxBackward", std::move(out), x, dim,
                        tensor::SoftmaxGrad);
}

absl::StatusOr<Tensor> LogSoftmax(const Tensor& x, int64_t dim) {
  const tensor::RawOperationsScope raw;
  ASSIGN_OR_RETURN(Tensor out, tensor::LogSoftmax(x, dim));
  if (!MustRecord(x)) return out;
  return RecordOfOutput("LogSoftmaxBackward", std::move(out), x, dim,
                        tensor::LogSoftmaxGrad);
}

absl::StatusOr<Tensor> SoftmaxCrossEntropy(const Tensor& logits,
                                           const Tensor& labels) {
  const tensor::RawOperationsScope raw;
  ASSIGN_OR_RETURN(tensor::CrossEntropy result,
                   tensor::SoftmaxCrossEntropy(logits, labels));
  if (!MustRecord(logits)) return std::move(result.loss);
  return Record(
      "SoftmaxCrossEntropyBackward", std::move(result.loss), Inputs1{&logits},
      std::array{Keep::Input(result.probs), Keep::Input(labels)},
      [](const Tensor& dout, Kept kept,
         InputGradients& gradients) -> absl::Status {
        ASSIGN_OR_RETURN(gradients[0], tensor::SoftmaxCrossEntropyGrad(
                                           kept[0], kept[1], dout));
        return absl::OkStatus();
      });
}

}  // namespace hawser::autograd
