#include "autograd/ops/embedding.h"

#include <array>
#include <span>
#include <utility>

#include "async/status_macros.h"
#include "autograd/internal/record.h"
#include "tensor/ops/embedding.h"
#include "tensor/recording_mode.h"

namespace hawser::autograd {

using internal::InputGradients;
using internal::Keep;
using Inputs1 = std::array<const Tensor*, 1>;

absl::StatusOr<Tensor> Embedding(const Tensor& weight, const Tensor& ids) {
  const tensor::RawOperationsScope raw;
  ASSIGN_OR_RETURN(Tensor out, tensor::Embedding(weight, ids));
  if (!internal::MustRecord(weight)) return out;
  return internal::Record(
      "EmbeddingBackward", std::move(out), Inputs1{&weight},
      std::array{Keep::Input(ids)},
      [rows = weight.dim(0)](const Tensor& dout, std::span<const Tensor> kept,
                             InputGradients& gradients) -> absl::Status {
        ASSIGN_OR_RETURN(gradients[0],
                         tensor::EmbeddingGrad(dout, kept[0], rows));
        return absl::OkStatus();
      });
}

absl::StatusOr<Tensor> EmbeddingBag(const Tensor& weight, const Tensor& ids,
                                    const Tensor& offsets, BagMode mode) {
  const tensor::RawOperationsScope raw;
  ASSIGN_OR_RETURN(tensor::EmbeddingBagResult result,
                   tensor::EmbeddingBag(weight, ids, offsets, mode));
  if (!internal::MustRecord(weight)) return std::move(result.out);
  return internal::Record(
      "EmbeddingBagBackward", std::move(result.out), Inputs1{&weight},
      std::array{Keep::Input(ids), Keep::Input(offsets),
                 Keep::Input(result.max_ids)},
      [rows = weight.dim(0), mode](const Tensor& dout,
                                   std::span<const Tensor> kept,
                                   InputGradients& gradients) -> absl::Status {
        ASSIGN_OR_RETURN(gradients[0],
                         tensor::EmbeddingBagGrad(dout, kept[0], kept[1],
                                                  kept[2], mode, rows));
        return absl::OkStatus();
      });
}

}  // namespace hawser::autograd
