#include "autograd/ops/cast.h"

#include <array>
#include <span>
#include <utility>

#include "async/status_macros.h"
#include "autograd/internal/record.h"
#include "tensor/recording_mode.h"

namespace hawser::autograd {

using internal::InputGradients;

absl::StatusOr<Tensor> Cast(const Tensor& a, tensor::DType dtype) {
  const tensor::RawOperationsScope raw;
  ASSIGN_OR_RETURN(Tensor out, a.To(dtype));
  if (!internal::MustRecord(a) || out.is_same(a) ||
      !tensor::IsFloatingPoint(dtype)) {
    return out;
  }
  return internal::Record(
      "CastBackward", std::move(out), std::array<const Tensor*, 1>{&a},
      std::array<internal::Keep, 0>{},
      [a_dtype = a.dtype()](const Tensor& dout, std::span<const Tensor>,
                            InputGradients& gradients) -> absl::Status {
        ASSIGN_OR_RETURN(gradients[0], dout.To(a_dtype));
        return absl::OkStatus();
      });
}

}  // namespace hawser::autograd
