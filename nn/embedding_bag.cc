#include "nn/embedding_bag.h"

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "autograd/ops/embedding.h"
#include "nn/internal/layer_error.h"
#include "tensor/ops/elementwise.h"
#include "tensor/ops/random.h"
#include "tensor/tensor.h"

namespace hawser::nn {

absl::StatusOr<std::unique_ptr<EmbeddingBag>> EmbeddingBag::Create(
    const Options& o, tensor::Generator& generator) {
  RETURN_IF_ERROR(internal::CheckSizes("EmbeddingBag",
                                       {{"rows", o.rows}, {"width", o.width}}));
  auto module = std::unique_ptr<EmbeddingBag>(new EmbeddingBag(o));
  ASSIGN_OR_RETURN(
      module->weight_,
      tensor::Normal({o.rows, o.width}, 0, 1, generator, {.dtype = o.dtype}));
  module->RegisterParameter("weight", &module->weight_);
  return module;
}

absl::StatusOr<Tensor> EmbeddingBag::Forward(const Tensor& ids,
                                             const Tensor& offsets) const {
  if (!ids.defined() || ids.rank() != 1) {
    return internal::WrongInput(
        absl::StrCat("EmbeddingBag(", options_.rows, ", ", options_.width, ")"),
        "ids", "[n] with offsets", ids);
  }
  return autograd::EmbeddingBag(weight_, ids, offsets, options_.mode);
}

absl::StatusOr<Tensor> EmbeddingBag::Forward(const Tensor& ids) const {
  if (!ids.defined() || ids.rank() != 2) {
    return internal::WrongInput(
        absl::StrCat("EmbeddingBag(", options_.rows, ", ", options_.width, ")"),
        "ids", "[bags, n] without offsets", ids);
  }
  ASSIGN_OR_RETURN(const Tensor flat, ids.Reshape({-1}));
  ASSIGN_OR_RETURN(
      const Tensor offsets,
      tensor::MulScalar(Tensor::Arange(ids.dim(0), {ids.dtype(), ids.device()}),
                        static_cast<double>(ids.dim(1))));
  return autograd::EmbeddingBag(weight_, flat, offsets, options_.mode);
}

}  // namespace hawser::nn
