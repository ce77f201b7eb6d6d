// Differentiable indexing. Shapes, dtypes and errors: tensor/ops/gather.h.
#ifndef HAWSER_AUTOGRAD_OPS_GATHER_H_
#define HAWSER_AUTOGRAD_OPS_GATHER_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "tensor/tensor.h"

namespace hawser::autograd {

absl::StatusOr<Tensor> Gather(const Tensor& a, int64_t dim,
                              const Tensor& index);
absl::StatusOr<Tensor> ScatterAdd(const Tensor& a, int64_t dim,
                                  const Tensor& index, const Tensor& src);
absl::StatusOr<Tensor> IndexSelect(const Tensor& a, int64_t dim,
                                   const Tensor& index);
absl::StatusOr<Tensor> IndexAdd(const Tensor& a, int64_t dim,
                                const Tensor& index, const Tensor& src);

}  // namespace hawser::autograd

#endif  // HAWSER_AUTOGRAD_OPS_GATHER_H_
