#include "autograd/ops/dropout.h"

#include <array>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "autograd/internal/record.h"
#include "tensor/ops/elementwise.h"
#include "tensor/ops/in_place.h"
#include "tensor/recording_mode.h"

namespace hawser::autograd {

using internal::InputGradients;
using internal::Keep;

absl::StatusOr<Tensor> Dropout(const Tensor& a, double probability,
                               tensor::Generator& generator) {
  const tensor::RawOperationsScope raw;
  if (!(probability >= 0 && probability <= 1)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Dropout: probability ", probability, " is not in [0, 1]"));
  }
  if (!a.defined() || !tensor::IsFloatingPoint(a.dtype())) {
    return absl::InvalidArgumentError(
        absl::StrCat("Dropout: needs a floating-point tensor, not ",
                     a.defined() ? a.ToString() : "an undefined one"));
  }
  const double keep = 1 - probability;
  ASSIGN_OR_RETURN(Tensor mask, tensor::Bernoulli(a.shape(), keep, generator,
                                                  {a.dtype(), a.device()}));
  if (keep > 0) RETURN_IF_ERROR(tensor::MulScalarInPlace(mask, 1 / keep));
  ASSIGN_OR_RETURN(Tensor out, tensor::Mul(a, mask));
  if (!internal::MustRecord(a)) return out;
  return internal::Record(
      "DropoutBackward", std::move(out), std::array<const Tensor*, 1>{&a},
      std::array{Keep::Input(mask)},
      [](const Tensor& dout, std::span<const Tensor> kept,
         InputGradients& gradients) -> absl::Status {
        ASSIGN_OR_RETURN(gradients[0], tensor::Mul(dout, kept[0]));
        return absl::OkStatus();
      });
}

}  // namespace hawser::autograd
