#include "autograd/ops/gather.h"

#include <array>
#include <span>
#include <utility>

#include "async/status_macros.h"
#include "autograd/internal/record.h"
#include "tensor/ops/gather.h"
#include "tensor/recording_mode.h"
#include "tensor/shape.h"

namespace hawser::autograd {
namespace {

using internal::InputGradients;
using internal::Keep;
using internal::MustRecord;
using internal::Record;
using tensor::Shape;
using Inputs1 = std::array<const Tensor*, 1>;
using Kept = std::span<const Tensor>;

Tensor ZerosLike(const Tensor& t, const Shape& shape) {
  return Tensor::Zeros(shape, {t.dtype(), t.device()});
}

// Zeros of `shape` with `part` at the origin.
absl::StatusOr<Tensor> PadTo(const Shape& shape, Tensor part) {
  if (part.shape() == shape) return part;
  Tensor padded = ZerosLike(part, shape);
  Tensor corner = padded;
  for (int i = 0; i < shape.rank(); ++i) {
    ASSIGN_OR_RETURN(corner, corner.Narrow(i, 0, part.dim(i)));
  }
  RETURN_IF_ERROR(corner.CopyFrom(part));
  return padded;
}

}  // namespace

absl::StatusOr<Tensor> Gather(const Tensor& a, int64_t dim,
                              const Tensor& index) {
  const tensor::RawOperationsScope raw;
  ASSIGN_OR_RETURN(Tensor out, tensor::Gather(a, dim, index));
  if (!MustRecord(a)) return out;
  return Record(
      "GatherBackward", std::move(out), Inputs1{&a},
      std::array{Keep::Input(index)},
      [a_shape = a.shape(), dim](const Tensor& dout, Kept kept,
                                 InputGradients& gradients) -> absl::Status {
        ASSIGN_OR_RETURN(
            gradients[0],
            tensor::ScatterAdd(ZerosLike(dout, a_shape), dim, kept[0], dout));
        return absl::OkStatus();
      });
}

absl::StatusOr<Tensor> ScatterAdd(const Tensor& a, int64_t dim,
                                  const Tensor& index, const Tensor& src) {
  const tensor::RawOperationsScope raw;
  ASSIGN_OR_RETURN(Tensor out, tensor::ScatterAdd(a, dim, index, src));
  if (!MustRecord(a, src)) return out;
  return Record(
      "ScatterAddBackward", std::move(out), std::array{&a, &src},
      std::array{Keep::Input(index)},
      [src_shape = src.shape(), dim](
          const Tensor& dout, Kept kept,
          InputGradients& gradients) -> absl::Status {
        if (gradients.needed(0)) gradients[0] = dout;
        if (gradients.needed(1)) {
          ASSIGN_OR_RETURN(Tensor read, tensor::Gather(dout, dim, kept[0]));
          ASSIGN_OR_RETURN(gradients[1], PadTo(src_shape, std::move(read)));
        }
        return absl::OkStatus();
      });
}

absl::StatusOr<Tensor> IndexSelect(const Tensor& a, int64_t dim,
                                   const Tensor& index) {
  const tensor::RawOperationsScope raw;
  ASSIGN_OR_RETURN(Tensor out, tensor::IndexSelect(a, dim, index));
  if (!MustRecord(a)) return out;
  return Record(
      "IndexSelectBackward", std::move(out), Inputs1{&a},
      std::array{Keep::Input(index)},
      [a_shape = a.shape(), dim](const Tensor& dout, Kept kept,
                                 InputGradients& gradients) -> absl::Status {
        ASSIGN_OR_RETURN(
            gradients[0],
            tensor::IndexAdd(ZerosLike(dout, a_shape), dim, kept[0], dout));
        return absl::OkStatus();
      });
}

absl::StatusOr<Tensor> IndexAdd(const Tensor& a, int64_t dim,
                                const Tensor& index, const Tensor& src) {
  const tensor::RawOperationsScope raw;
  ASSIGN_OR_RETURN(Tensor out, tensor::IndexAdd(a, dim, index, src));
  if (!MustRecord(a, src)) return out;
  return Record("IndexAddBackward", std::move(out), std::array{&a, &src},
                std::array{Keep::Input(index)},
                [dim](const Tensor& dout, Kept kept,
                      InputGradients& gradients) -> absl::Status {
                  if (gradients.needed(0)) gradients[0] = dout;
                  if (gradients.needed(1)) {
                    ASSIGN_OR_RETURN(gradients[1],
                                     tensor::IndexSelect(dout, dim, kept[0]));
                  }
                  return absl::OkStatus();
                });
}

}  // namespace hawser::autograd
