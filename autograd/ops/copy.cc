#include "autograd/ops/copy.h"

#include <array>
#include <span>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "async/status_macros.h"
#include "autograd/internal/record.h"
#include "tensor/recording_mode.h"

namespace hawser::autograd {
namespace {

using internal::InputGradients;
using internal::Keep;

Tensor RecordCopy(std::string_view name, Tensor out, const Tensor& a) {
  if (!internal::MustRecord(a) || out.is_same(a)) return out;
  return internal::Record(
      name, std::move(out), std::array<const Tensor*, 1>{&a},
      std::array<Keep, 0>{},
      [device = a.device()](const Tensor& dout, std::span<const Tensor>,
                            InputGradients& gradients) -> absl::Status {
        ASSIGN_OR_RETURN(gradients[0], dout.To(device));
        return absl::OkStatus();
      });
}

}  // namespace

absl::StatusOr<Tensor> Clone(const Tensor& a) {
  const tensor::RawOperationsScope raw;
  ASSIGN_OR_RETURN(Tensor out, a.Clone());
  return RecordCopy("CloneBackward", std::move(out), a);
}

absl::StatusOr<Tensor> Contiguous(const Tensor& a) {
  const tensor::RawOperationsScope raw;
  ASSIGN_OR_RETURN(Tensor out, a.Contiguous());
  return RecordCopy("ContiguousBackward", std::move(out), a);
}

absl::StatusOr<Tensor> ToDevice(const Tensor& a, tensor::Device device) {
  const tensor::RawOperationsScope raw;
  ASSIGN_OR_RETURN(Tensor out, a.To(device));
  return RecordCopy("ToDeviceBackward", std::move(out), a);
}

}  // namespace hawser::autograd
