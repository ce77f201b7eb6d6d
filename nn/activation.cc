#include "nn/activation.h"

#include "absl/status/statusor.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/softmax.h"
#include "tensor/tensor.h"

namespace hawser::nn {

absl::StatusOr<Tensor> ReLU::Forward(const Tensor& x) const {
  return autograd::Relu(x);
}

absl::StatusOr<Tensor> GELU::Forward(const Tensor& x) const {
  return autograd::Gelu(x);
}

absl::StatusOr<Tensor> SiLU::Forward(const Tensor& x) const {
  return autograd::Silu(x);
}

absl::StatusOr<Tensor> Sigmoid::Forward(const Tensor& x) const {
  return autograd::Sigmoid(x);
}

absl::StatusOr<Tensor> Tanh::Forward(const Tensor& x) const {
  return autograd::Tanh(x);
}

absl::StatusOr<Tensor> Softmax::Forward(const Tensor& x) const {
  return autograd::Softmax(x, dim_);
}

absl::StatusOr<Tensor> LogSoftmax::Forward(const Tensor& x) const {
  return autograd::LogSoftmax(x, dim_);
}

}  // namespace hawser::nn
