#include "nn/embedding.h"

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/embedding.h"
#include "nn/init.h"
#include "nn/internal/layer_error.h"
#include "tensor/dtype.h"
#include "tensor/ops/elementwise.h"
#include "tensor/ops/random.h"
#include "tensor/tensor.h"

namespace hawser::nn {

absl::StatusOr<std::unique_ptr<Embedding>> Embedding::Create(
    const Options& o, tensor::Generator& generator) {
  RETURN_IF_ERROR(internal::CheckSizes("Embedding",
                                       {{"rows", o.rows}, {"width", o.width}}));
  if (o.padding_id.has_value() &&
      (*o.padding_id < 0 || *o.padding_id >= o.rows)) {
    return absl::InvalidArgumentError(
        absl::StrCat("Embedding: padding_id ", *o.padding_id,
                     " is not one of the ", o.rows, " rows"));
  }
  auto layer = std::unique_ptr<Embedding>(new Embedding(o));
  ASSIGN_OR_RETURN(
      layer->weight_,
      tensor::Normal({o.rows, o.width}, 0, 1, generator, {.dtype = o.dtype}));
  if (o.padding_id.has_value()) {
    ASSIGN_OR_RETURN(Tensor row, layer->weight_.Select(0, *o.padding_id));
    RETURN_IF_ERROR(FillConstant(row, 0));
  }
  layer->RegisterParameter("weight", &layer->weight_);
  return layer;
}

absl::StatusOr<Tensor> Embedding::Forward(const Tensor& ids) const {
  if (!ids.defined() || (ids.dtype() != tensor::DType::kI64 &&
                         ids.dtype() != tensor::DType::kI32)) {
    return internal::WrongInput(
        absl::StrCat("Embedding(", options_.rows, ", ", options_.width, ")"),
        "input", "ids of dtype i64 or i32", ids);
  }
  ASSIGN_OR_RETURN(const Tensor rows, autograd::Embedding(weight_, ids));
  if (!options_.padding_id.has_value()) return rows;
  // The same values, but without a gradient where the id is padding.
  ASSIGN_OR_RETURN(const Tensor last, ids.Unsqueeze(-1));
  ASSIGN_OR_RETURN(
      const Tensor padding,
      tensor::Eq(last,
                 Tensor::Full({}, static_cast<double>(*options_.padding_id),
                              {ids.dtype(), ids.device()})));
  return autograd::Where(padding, rows.Detach(), rows);
}

}  // namespace hawser::nn
