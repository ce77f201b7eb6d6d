#ifndef HAWSER_NN_POOL2D_H_
#define HAWSER_NN_POOL2D_H_

#include "absl/status/statusor.h"
#include "nn/module.h"
#include "tensor/backend/kernel_types.h"

namespace hawser::nn {

// The largest element of each window: [n, c, h, w] to [n, c, oh, ow], sizes and
// options as in tensor/ops/pool.h.
class MaxPool2d final : public Layer {
 public:
  explicit MaxPool2d(const tensor::Pool2dOptions& options)
      : options_(options) {}

  absl::StatusOr<Tensor> Forward(const Tensor& x) const override;

 private:
  const tensor::Pool2dOptions options_;
};

// The mean of each window.
class AvgPool2d final : public Layer {
 public:
  explicit AvgPool2d(const tensor::Pool2dOptions& options)
      : options_(options) {}

  absl::StatusOr<Tensor> Forward(const Tensor& x) const override;

 private:
  const tensor::Pool2dOptions options_;
};

}  // namespace hawser::nn

#endif  // HAWSER_NN_POOL2D_H_
