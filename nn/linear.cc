#include "nn/linear.h"

#include <cmath>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "autograd/ops/matmul.h"
#include "nn/internal/layer_error.h"
#include "nn/module.h"
#include "tensor/ops/random.h"
#include "tensor/tensor.h"

namespace hawser::nn {

absl::StatusOr<std::unique_ptr<Linear>> Linear::Create(
    const Options& o, tensor::Generator& generator) {
  RETURN_IF_ERROR(internal::CheckSizes(
      "Linear",
      {{"in_features", o.in_features}, {"out_features", o.out_features}}));
  auto layer = std::unique_ptr<Linear>(new Linear(o));
  const double bound = 1 / std::sqrt(static_cast<double>(o.in_features));
  ASSIGN_OR_RETURN(layer->weight_,
                   tensor::Uniform({o.out_features, o.in_features}, -bound,
                                   bound, generator, {.dtype = o.dtype}));
  if (o.bias) {
    ASSIGN_OR_RETURN(layer->bias_,
                     tensor::Uniform({o.out_features}, -bound, bound, generator,
                                     {.dtype = o.dtype}));
  }
  layer->RegisterParameter("weight", &layer->weight_);
  layer->RegisterParameter("bias", &layer->bias_);
  return layer;
}

absl::StatusOr<Tensor> Linear::Forward(const Tensor& x) const {
  if (!x.defined() || x.rank() == 0 || x.dim(-1) != options_.in_features) {
    return internal::WrongInput(
        absl::StrCat("Linear(", options_.in_features, ", ",
                     options_.out_features, ")"),
        "input", absl::StrCat("[..., ", options_.in_features, "]"), x);
  }
  return autograd::Linear(x, weight_, bias_, options_.activation);
}

}  // namespace hawser::nn
