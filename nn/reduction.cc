#include "nn/reduction.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "autograd/ops/reduce.h"
#include "tensor/tensor.h"

namespace hawser::nn {

absl::StatusOr<Tensor> Reduce(const Tensor& losses, Reduction reduction) {
  switch (reduction) {
    case Reduction::kMean:
      return autograd::Mean(losses);
    case Reduction::kSum:
      return autograd::Sum(losses);
    case Reduction::kNone:
      return losses;
  }
  return absl::InvalidArgumentError(
      "the reduction must be kMean, kSum or kNone");
}

}  // namespace hawser::nn
