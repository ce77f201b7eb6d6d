// Differentiable copies: Clone(), Contiguous() and To(device) of Tensor with
// gradients. Errors are those of these methods. To change the dtype:
// autograd/ops/cast.h.
#ifndef HAWSER_AUTOGRAD_OPS_COPY_H_
#define HAWSER_AUTOGRAD_OPS_COPY_H_

#include "absl/status/statusor.h"
#include "tensor/device.h"
#include "tensor/tensor.h"

namespace hawser::autograd {

// A contiguous copy.
absl::StatusOr<Tensor> Clone(const Tensor& a);
// `a` itself if it is contiguous, otherwise a contiguous copy.
absl::StatusOr<Tensor> Contiguous(const Tensor& a);
// `a` itself if it is on `device`, otherwise a contiguous copy there. The
// gradient is copied back to the device of `a`.
absl::StatusOr<Tensor> ToDevice(const Tensor& a, tensor::Device device);

}  // namespace hawser::autograd

#endif  // HAWSER_AUTOGRAD_OPS_COPY_H_
