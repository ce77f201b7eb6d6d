#include "autograd/ops/layer_norm.h"

#include <array>
#include <span>
#include <utility>

#include "async/status_macros.h"
#include "autograd/internal/record.h"
#include "tensor/ops/layer_norm.h"
#include "tensor/recording_mode.h"

namespace hawser::autograd {

using internal::InputGradients;
using internal::Keep;

absl::StatusOr<Tensor> LayerNorm(const Tensor& x, int normalized_rank,
                                 const Tensor& weight, const Tensor& bias,
                                 double eps) {
  const tensor::RawOperationsScope raw;
  ASSIGN_OR_RETURN(tensor::LayerNormResult result,
                   tensor::LayerNorm(x, normalized_rank, weight, bias, eps));
  if (!internal::MustRecord(x, weight, bias)) return std::move(result.y);
  return internal::Record(
      "LayerNormBackward", std::move(result.y), std::array{&x, &weight, &bias},
      std::array{Keep::Input(x), Keep::Input(result.mean),
                 Keep::Input(result.rstd), Keep::Input(weight)},
      [normalized_rank](const Tensor& dout, std::span<const Tensor> kept,
                        InputGradients& gradients) -> absl::Status {
        ASSIGN_OR_RETURN(tensor::LayerNormGradients all,
                         tensor::LayerNormGrad(dout, kept[0], normalized_rank,
                                               kept[1], kept[2], kept[3]));
        if (gradients.needed(0)) gradients[0] = std::move(all.x);
        if (gradients.needed(1)) gradients[1] = std::move(all.weight);
        if (gradients.needed(2)) gradients[2] = std::move(all.bias);
        return absl::OkStatus();
      });
}

}  // namespace hawser::autograd
