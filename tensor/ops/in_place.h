// Operations that write into a tensor they are given, through whatever view it
// is, and bump the version of its storage.
//
// `b` broadcasts to the shape of `a` and has its dtype and device (CopyInto
// converts the dtype). `a` must not be a broadcast view: no two of its elements
// may share memory. `b` may be `a` itself, but not overlap it otherwise. Not
// safe while another thread uses `a`.
//
// kInvalidArgument: shapes, dtypes or devices do not fit; named. Nothing was
// written then.
#ifndef HAWSER_TENSOR_OPS_IN_PLACE_H_
#define HAWSER_TENSOR_OPS_IN_PLACE_H_

#include "absl/status/status.h"
#include "tensor/tensor.h"

namespace hawser::tensor {

// a += alpha * b; for integers alpha is a whole number.
absl::Status AddInPlace(Tensor& a, const Tensor& b, double alpha = 1);
// a *= b
absl::Status MulInPlace(Tensor& a, const Tensor& b);
// a *= value
absl::Status MulScalarInPlace(Tensor& a, double value);
// a = value, which integers and bool must hold as it is.
absl::Status FillInPlace(Tensor& a, double value);
absl::Status CopyInto(Tensor& dst, const Tensor& src);

}  // namespace hawser::tensor

#endif  // HAWSER_TENSOR_OPS_IN_PLACE_H_
