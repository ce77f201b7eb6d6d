#ifndef HAWSER_NN_REDUCTION_H_
#define HAWSER_NN_REDUCTION_H_

#include "absl/status/statusor.h"
#include "tensor/tensor.h"

namespace hawser::nn {

// Reduction of elementwise losses to a result.
enum class Reduction { kMean, kSum, kNone };

// Returns the mean or the sum of `losses` as a scalar, or `losses` unchanged.
// Differentiable.
absl::StatusOr<Tensor> Reduce(const Tensor& losses, Reduction reduction);

}  // namespace hawser::nn

#endif  // HAWSER_NN_REDUCTION_H_
