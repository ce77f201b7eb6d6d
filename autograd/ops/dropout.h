// Inverted dropout (Srivastava et al., JMLR 2014).
#ifndef HAWSER_AUTOGRAD_OPS_DROPOUT_H_
#define HAWSER_AUTOGRAD_OPS_DROPOUT_H_

#include "absl/status/statusor.h"
#include "tensor/ops/random.h"
#include "tensor/tensor.h"

namespace hawser::autograd {

// Sets each element of `a` to 0 with `probability`, and otherwise divides it by
// 1 - probability. Floating-point dtypes.
//
//   kInvalidArgument  `probability` is not in [0, 1], or the dtype is not
//                     floating point.
absl::StatusOr<Tensor> Dropout(const Tensor& a, double probability,
                               tensor::Generator& generator);

}  // namespace hawser::autograd

#endif  // HAWSER_AUTOGRAD_OPS_DROPOUT_H_
