#include "nn/conv2d.h"

#include <cmath>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "autograd/ops/conv2d.h"
#include "nn/internal/layer_error.h"
#include "nn/module.h"
#include "tensor/ops/random.h"
#include "tensor/tensor.h"

namespace hawser::nn {

absl::StatusOr<std::unique_ptr<Conv2d>> Conv2d::Create(
    const Options& o, tensor::Generator& generator) {
  const int64_t groups = o.convolution.groups;
  RETURN_IF_ERROR(
      internal::CheckSizes("Conv2d", {{"in_channels", o.in_channels},
                                      {"out_channels", o.out_channels},
                                      {"the kernel's height", o.kernel[0]},
                                      {"the kernel's width", o.kernel[1]},
                                      {"groups", groups}}));
  if (o.in_channels % groups != 0 || o.out_channels % groups != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("Conv2d: ", groups, " groups do not divide ",
                     o.in_channels, " and ", o.out_channels, " channels"));
  }
  auto layer = std::unique_ptr<Conv2d>(new Conv2d(o));
  const int64_t depth = o.in_channels / groups;
  const double fan_in = static_cast<double>(depth) *
                        static_cast<double>(o.kernel[0]) *
                        static_cast<double>(o.kernel[1]);
  const double bound = 1 / std::sqrt(fan_in);
  ASSIGN_OR_RETURN(
      layer->weight_,
      tensor::Uniform({o.out_channels, depth, o.kernel[0], o.kernel[1]}, -bound,
                      bound, generator, {.dtype = o.dtype}));
  if (o.bias) {
    ASSIGN_OR_RETURN(layer->bias_,
                     tensor::Uniform({o.out_channels}, -bound, bound, generator,
                                     {.dtype = o.dtype}));
  }
  layer->RegisterParameter("weight", &layer->weight_);
  layer->RegisterParameter("bias", &layer->bias_);
  return layer;
}

absl::StatusOr<Tensor> Conv2d::Forward(const Tensor& x) const {
  if (!x.defined() || x.rank() != 4 || x.dim(1) != options_.in_channels) {
    return internal::WrongInput(
        absl::StrCat("Conv2d(", options_.in_channels, ", ",
                     options_.out_channels, ")"),
        "input", absl::StrCat("[n, ", options_.in_channels, ", h, w]"), x);
  }
  return autograd::Conv2d(x, weight_, bias_, options_.convolution);
}

}  // namespace hawser::nn
