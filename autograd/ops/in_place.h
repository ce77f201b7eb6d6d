// Operations that write to `a` and are recorded. Those of tensor/ops/in_place.h
// are not recorded. Both kinds make a backward pass that needs the overwritten
// value fail, naming the operation that saved it.
//
//   kFailedPrecondition  while recording, if `a` or `b` requires a gradient and
//                        `a` is a leaf that requires one (update it under a
//                        NoGradGuard), or shares its memory with another
//                        tensor, whose history would be wrong.
// Shapes, dtypes and other errors: tensor/ops/in_place.h.
#ifndef HAWSER_AUTOGRAD_OPS_IN_PLACE_H_
#define HAWSER_AUTOGRAD_OPS_IN_PLACE_H_

#include "absl/status/status.h"
#include "tensor/tensor.h"

namespace hawser::autograd {

// a += alpha * b
absl::Status AddInPlace(Tensor& a, const Tensor& b, double alpha = 1);
// a *= b. Copies the values that the gradient needs.
absl::Status MulInPlace(Tensor& a, const Tensor& b);
// a *= value
absl::Status MulScalarInPlace(Tensor& a, double value);
absl::Status FillInPlace(Tensor& a, double value);
absl::Status CopyInto(Tensor& dst, const Tensor& src);

}  // namespace hawser::autograd

#endif  // HAWSER_AUTOGRAD_OPS_IN_PLACE_H_
