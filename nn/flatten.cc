#include "nn/flatten.h"

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "autograd/ops/view.h"
#include "nn/internal/layer_error.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::nn {

absl::StatusOr<Tensor> Flatten::Forward(const Tensor& x) const {
  const int rank = x.defined() ? x.rank() : 0;
  const int first = first_ < 0 ? first_ + rank : first_;
  const int last = last_ < 0 ? last_ + rank : last_;
  if (first < 0 || last < first || last >= rank) {
    return internal::WrongInput(
        absl::StrCat("Flatten(", first_, ", ", last_, ")"), "input",
        "a tensor that has these dims", x);
  }
  tensor::Shape shape;
  int64_t flattened = 1;
  for (int i = 0; i < rank; ++i) {
    if (i < first || i > last) {
      shape.Append(x.dim(i));
      continue;
    }
    flattened *= x.dim(i);
    if (i == last) shape.Append(flattened);
  }
  return autograd::Reshape(x, shape);
}

}  // namespace hawser::nn
