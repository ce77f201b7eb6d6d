#ifndef HAWSER_NN_REDUCTION_H_
#define HAWSER_NN_REDUCTION_H_

#include "absl/status/statusor.h"
#include "tensor/tensor.h"

namespace hawser::nn {

// Reduction of the losses of the elements.
enum class Reduction { kMean, kSum, kNone };

// The mean or the sum of `losses`, of rank 0, or `losses` as they are;
// differentiable.
absl::StatusOr<Tensor> Reduce(const Tensor& losses, Reduction reduction);

}  // namespace hawser::nn

#endif  // HAWSER_NN_REDUCTION_H_
