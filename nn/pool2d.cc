#include "nn/pool2d.h"

#include "absl/status/statusor.h"
#include "autograd/ops/pool.h"
#include "nn/internal/layer_error.h"
#include "tensor/tensor.h"

namespace hawser::nn {

absl::StatusOr<Tensor> MaxPool2d::Forward(const Tensor& x) const {
  if (!x.defined() || x.rank() != 4) {
    return internal::WrongInput("MaxPool2d", "input", "[n, c, h, w]", x);
  }
  return autograd::MaxPool2d(x, options_);
}

absl::StatusOr<Tensor> AvgPool2d::Forward(const Tensor& x) const {
  if (!x.defined() || x.rank() != 4) {
    return internal::WrongInput("AvgPool2d", "input", "[n, c, h, w]", x);
  }
  return autograd::AvgPool2d(x, options_);
}

}  // namespace hawser::nn
