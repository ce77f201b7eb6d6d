#include "nn/layer_norm.h"

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "autograd/ops/layer_norm.h"
#include "nn/internal/layer_error.h"
#include "tensor/ops/in_place.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::nn {

absl::StatusOr<std::unique_ptr<LayerNorm>> LayerNorm::Create(const Options& o) {
  if (o.normalized_shape.rank() == 0) {
    return absl::InvalidArgumentError("LayerNorm: normalized_shape is empty");
  }
  for (const int64_t size : o.normalized_shape) {
    RETURN_IF_ERROR(
        internal::CheckSizes("LayerNorm", {{"each normalized size", size}}));
  }
  if (!(o.eps >= 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("LayerNorm: eps must be at least 0, not ", o.eps));
  }
  if (!IsFloatingPoint(o.dtype)) {
    return absl::InvalidArgumentError(
        "LayerNorm: the dtype must be floating point");
  }
  auto layer = std::unique_ptr<LayerNorm>(new LayerNorm(o));
  if (o.affine) {
    const tensor::TensorOptions like = {.dtype = o.dtype};
    ASSIGN_OR_RETURN(layer->weight_,
                     Tensor::TryEmpty(o.normalized_shape, like));
    ASSIGN_OR_RETURN(layer->bias_, Tensor::TryEmpty(o.normalized_shape, like));
    RETURN_IF_ERROR(tensor::FillInPlace(layer->weight_, 1));
    RETURN_IF_ERROR(tensor::FillInPlace(layer->bias_, 0));
  }
  layer->RegisterParameter("weight", &layer->weight_);
  layer->RegisterParameter("bias", &layer->bias_);
  return layer;
}

absl::StatusOr<Tensor> LayerNorm::Forward(const Tensor& x) const {
  const tensor::Shape& normalized = options_.normalized_shape;
  const int extra = x.defined() ? x.rank() - normalized.rank() : -1;
  bool fits = extra >= 0;
  for (int i = 0; fits && i < normalized.rank(); ++i) {
    fits = x.dim(extra + i) == normalized[i];
  }
  if (!fits) {
    const std::string sizes = normalized.ToString();
    return internal::WrongInput(absl::StrCat("LayerNorm(", sizes, ")"), "input",
                                absl::StrCat("[..., ", sizes.substr(1)), x);
  }
  return autograd::LayerNorm(x, normalized.rank(), weight_, bias_,
                             options_.eps);
}

}  // namespace hawser::nn
