#include "autograd/ops/conv2d.h"

#include <array>
#include <span>
#include <utility>

#include "async/status_macros.h"
#include "autograd/internal/record.h"
#include "tensor/ops/conv2d.h"
#include "tensor/recording_mode.h"

namespace hawser::autograd {

using internal::InputGradients;
using internal::Keep;

absl::StatusOr<Tensor> Conv2d(const Tensor& x, const Tensor& weight,
                              const Tensor& bias,
                              const Conv2dOptions& options) {
  const tensor::RawOperationsScope raw;
  ASSIGN_OR_RETURN(Tensor out, tensor::Conv2d(x, weight, bias, options));
  if (!internal::MustRecord(x, weight, bias)) return out;
  return internal::Record(
      "Conv2dBackward", std::move(out), std::array{&x, &weight, &bias},
      std::array{Keep::InputIf(RequiresGrad(weight), x),
                 Keep::InputIf(RequiresGrad(x), weight)},
      [x_shape = x.shape(), weight_shape = weight.shape(), options](
          const Tensor& dout, std::span<const Tensor> kept,
          InputGradients& gradients) -> absl::Status {
        if (gradients.needed(0)) {
          ASSIGN_OR_RETURN(gradients[0], tensor::Conv2dInputGrad(
                                             dout, kept[1], x_shape, options));
        }
        if (gradients.needed(1)) {
          ASSIGN_OR_RETURN(
              gradients[1],
              tensor::Conv2dWeightGrad(dout, kept[0], weight_shape, options));
        }
        if (gradients.needed(2)) {
          ASSIGN_OR_RETURN(gradients[2], tensor::Conv2dBiasGrad(dout));
        }
        return absl::OkStatus();
      });
}

}  // namespace hawser::autograd
