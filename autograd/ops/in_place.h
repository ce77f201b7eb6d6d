// Operations that write into `a` and record that. Those of
// tensor/ops/in_place.h record nothing; they and these make a backward pass
// fail, by name, that needs what was overwritten.
//
//   kFailedPrecondition  While recording, and if `a` or `b` requires a
//   gradient:
//                        `a` is a leaf that requires one (update it under a
//                        NoGradGuard), or shares its memory with another
//                        tensor, whose history would be wrong.
// Shapes, dtypes and other errors as in tensor/ops/in_place.h.
#ifndef HAWSER_AUTOGRAD_OPS_IN_PLACE_H_
#define HAWSER_AUTOGRAD_OPS_IN_PLACE_H_

#include "absl/status/status.h"
#include "tensor/tensor.h"

namespace hawser::autograd {

// a += alpha * b
absl::Status AddInPlace(Tensor& a, const Tensor& b, double alpha = 1);
// a *= b. Keeps copies of what the gradient needs.
absl::Status MulInPlace(Tensor& a, const Tensor& b);
// a *= value
absl::Status MulScalarInPlace(Tensor& a, double value);
absl::Status FillInPlace(Tensor& a, double value);
absl::Status CopyInto(Tensor& dst, const Tensor& src);

}  // namespace hawser::autograd

#endif  // HAWSER_AUTOGRAD_OPS_IN_PLACE_H_
