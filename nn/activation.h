#ifndef HAWSER_NN_ACTIVATION_H_
#define HAWSER_NN_ACTIVATION_H_

#include "absl/status/statusor.h"
#include "nn/module.h"

namespace hawser::nn {

// Activation functions as layers. Input and output have the same shape and
// floating-point dtype. All but Softmax and LogSoftmax are elementwise.

// max(x, 0).
class ReLU final : public Layer {
 public:
  absl::StatusOr<Tensor> Forward(const Tensor& x) const override;
};

// x times the standard normal distribution function of x.
class GELU final : public Layer {
 public:
  absl::StatusOr<Tensor> Forward(const Tensor& x) const override;
};

// x * sigmoid(x).
class SiLU final : public Layer {
 public:
  absl::StatusOr<Tensor> Forward(const Tensor& x) const override;
};

class Sigmoid final : public Layer {
 public:
  absl::StatusOr<Tensor> Forward(const Tensor& x) const override;
};

class Tanh final : public Layer {
 public:
  absl::StatusOr<Tensor> Forward(const Tensor& x) const override;
};

// Probabilities along `dim`, which add up to 1. LogSoftmax: their logarithms.
class Softmax final : public Layer {
 public:
  explicit Softmax(int dim) : dim_(dim) {}
  absl::StatusOr<Tensor> Forward(const Tensor& x) const override;

 private:
  const int dim_;
};

class LogSoftmax final : public Layer {
 public:
  explicit LogSoftmax(int dim) : dim_(dim) {}
  absl::StatusOr<Tensor> Forward(const Tensor& x) const override;

 private:
  const int dim_;
};

}  // namespace hawser::nn

#endif  // HAWSER_NN_ACTIVATION_H_
