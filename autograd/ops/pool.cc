#include "autograd/ops/pool.h"

#include <array>
#include <span>
#include <utility>

#include "async/status_macros.h"
#include "autograd/internal/record.h"
#include "tensor/ops/pool.h"
#include "tensor/recording_mode.h"

namespace hawser::autograd {

using internal::InputGradients;
using internal::Keep;
using Inputs1 = std::array<const Tensor*, 1>;

absl::StatusOr<Tensor> MaxPool2d(const Tensor& x,
                                 const Pool2dOptions& options) {
  const tensor::RawOperationsScope raw;
  ASSIGN_OR_RETURN(tensor::MaxPool pool, tensor::MaxPool2d(x, options));
  if (!internal::MustRecord(x)) return std::move(pool.values);
  return internal::Record(
      "MaxPool2dBackward", std::move(pool.values), Inputs1{&x},
      std::array{Keep::Input(pool.indices)},
      [x_shape = x.shape()](const Tensor& dout, std::span<const Tensor> kept,
                            InputGradients& gradients) -> absl::Status {
        ASSIGN_OR_RETURN(gradients[0],
                         tensor::MaxPool2dGrad(dout, kept[0], x_shape));
        return absl::OkStatus();
      });
}

absl::StatusOr<Tensor> AvgPool2d(const Tensor& x,
                                 const Pool2dOptions& options) {
  const tensor::RawOperationsScope raw;
  ASSIGN_OR_RETURN(Tensor out, tensor::AvgPool2d(x, options));
  if (!internal::MustRecord(x)) return out;
  return internal::Record(
      "AvgPool2dBackward", std::move(out), Inputs1{&x}, std::array<Keep, 0>{},
      [x_shape = x.shape(), options](
          const Tensor& dout, std::span<const Tensor>,
          InputGradients& gradients) -> absl::Status {
        ASSIGN_OR_RETURN(gradients[0],
                         tensor::AvgPool2dGrad(dout, x_shape, options));
        return absl::OkStatus();
      });
}

}  // namespace hawser::autograd
