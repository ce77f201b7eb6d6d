// Differentiable change of dtype.
#ifndef HAWSER_AUTOGRAD_OPS_CAST_H_
#define HAWSER_AUTOGRAD_OPS_CAST_H_

#include "absl/status/statusor.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace hawser::autograd {

// `a` in `dtype`, or `a` itself if it has that dtype. The gradient is converted
// back. A dtype that is not floating point ends the graph.
absl::StatusOr<Tensor> Cast(const Tensor& a, tensor::DType dtype);

}  // namespace hawser::autograd

#endif  // HAWSER_AUTOGRAD_OPS_CAST_H_
