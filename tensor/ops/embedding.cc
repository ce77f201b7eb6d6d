#include "tensor/ops/embedding.h"

#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "tensor/backend/backend.h"
#include "tensor/backend/kernel_types.h"
#include "tensor/dtype.h"
#include "tensor/ops/operands.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::tensor {
namespace {

TensorOptions OptionsOf(const Tensor& t) { return {t.dtype(), t.device()}; }

absl::Status CheckRows(int64_t rows, std::string_view name) {
  if (rows >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      absl::string_view(name.data(), name.size()), ": ", rows, " rows"));
}

// The zeros that the gradient of a table is added to.
absl::StatusOr<Tensor> ZeroTable(Backend& backend, int64_t rows, int64_t width,
                                 const Tensor& addends) {
  ASSIGN_OR_RETURN(Tensor table,
                   Tensor::TryEmpty({rows, width}, OptionsOf(addends)));
  RETURN_IF_ERROR(backend.Fill(0, table));
  return table;
}

absl::Status CheckBags(std::string_view name, Operand rows, const Tensor& ids,
                       const Tensor& offsets) {
  const Operands operands = {rows, {"ids", ids}, {"offsets", offsets}};
  RETURN_IF_ERROR(CheckFloating(name, {rows}));
  RETURN_IF_ERROR(CheckOperands(name, operands));
  RETURN_IF_ERROR(CheckIds(name, {"ids", ids}));
  if (offsets.dtype() != ids.dtype()) [[unlikely]] {
    return BadOperands(name, "ids and offsets differ in dtype", operands);
  }
  if (rows.tensor.rank() != 2 || ids.rank() != 1 || offsets.rank() != 1)
      [[unlikely]] {
    return BadOperands(name, "shapes must be [., d], [n] and [bags]", operands);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Tensor> Embedding(const Tensor& weight, const Tensor& ids) {
  const Operands operands = {{"weight", weight}, {"ids", ids}};
  RETURN_IF_ERROR(CheckOperands("Embedding", operands));
  RETURN_IF_ERROR(CheckIds("Embedding", {"ids", ids}));
  if (weight.rank() != 2 || ids.rank() + 1 > kMaxRank) [[unlikely]] {
    return BadOperands("Embedding", "weight must be [rows, d]", operands);
  }
  ASSIGN_OR_RETURN(Backend* const backend, BackendFor(weight.device()));
  Shape shape = ids.shape();
  shape.Append(weight.dim(1));
  const int64_t n = ids.num_elements();
  ASSIGN_OR_RETURN(const Tensor index, ids.Reshape({n}));
  ASSIGN_OR_RETURN(Tensor out,
                   Tensor::TryEmpty({n, weight.dim(1)}, OptionsOf(weight)));
  RETURN_IF_ERROR(backend->IndexSelect(weight, 0, index, out));
  return out.View(shape);
}

absl::StatusOr<Tensor> EmbeddingGrad(const Tensor& dout, const Tensor& ids,
                                     int64_t rows) {
  constexpr std::string_view kName = "EmbeddingGrad";
  const Operands operands = {{"dout", dout}, {"ids", ids}};
  RETURN_IF_ERROR(CheckFloating(kName, {{"dout", dout}}));
  RETURN_IF_ERROR(CheckOperands(kName, operands));
  RETURN_IF_ERROR(CheckIds(kName, {"ids", ids}));
  RETURN_IF_ERROR(CheckRows(rows, kName));
  if (dout.rank() != ids.rank() + 1 ||
      Shape(dout.shape().span().first(ids.rank())) != ids.shape())
      [[unlikely]] {
    return BadOperands(kName, "dout must have the dims of ids and one more",
                       operands);
  }
  ASSIGN_OR_RETURN(Backend* const backend, BackendFor(dout.device()));
  const int64_t n = ids.num_elements(), width = dout.dim(-1);
  ASSIGN_OR_RETURN(const Tensor index, ids.Reshape({n}));
  ASSIGN_OR_RETURN(const Tensor source, dout.Reshape({n, width}));
  ASSIGN_OR_RETURN(const Tensor addends, source.To(SumDType(dout.dtype())));
  ASSIGN_OR_RETURN(Tensor table, ZeroTable(*backend, rows, width, addends));
  RETURN_IF_ERROR(backend->IndexAdd(0, index, addends, table));
  return table.To(dout.dtype());
}

absl::StatusOr<EmbeddingBagResult> EmbeddingBag(const Tensor& weight,
                                                const Tensor& ids,
                                                const Tensor& offsets,
                                                BagMode mode) {
  RETURN_IF_ERROR(CheckBags("EmbeddingBag", {"weight", weight}, ids, offsets));
  ASSIGN_OR_RETURN(Backend* const backend, BackendFor(weight.device()));
  const Shape shape = {offsets.dim(0), weight.dim(1)};
  EmbeddingBagResult result;
  ASSIGN_OR_RETURN(result.out, Tensor::TryEmpty(shape, OptionsOf(weight)));
  if (mode == BagMode::kMax) {
    ASSIGN_OR_RETURN(result.max_ids,
                     Tensor::TryEmpty(shape, {DType::kI64, weight.device()}));
  }
  RETURN_IF_ERROR(backend->EmbeddingBag(mode, weight, ids, offsets, result.out,
                                        result.max_ids));
  return result;
}

absl::StatusOr<Tensor> EmbeddingBagGrad(const Tensor& dout, const Tensor& ids,
                                        const Tensor& offsets,
                                        const Tensor& max_ids, BagMode mode,
                                        int64_t rows) {
  constexpr std::string_view kName = "EmbeddingBagGrad";
  RETURN_IF_ERROR(CheckBags(kName, {"dout", dout}, ids, offsets));
  RETURN_IF_ERROR(CheckRows(rows, kName));
  if (dout.dim(0) != offsets.dim(0)) [[unlikely]] {
    return BadOperands(kName, "dout must have a row for each bag",
                       {{"dout", dout}, {"offsets", offsets}});
  }
  if (mode == BagMode::kMax) {
    const Operands operands = {{"dout", dout}, {"max_ids", max_ids}};
    RETURN_IF_ERROR(CheckOperands(kName, operands));
    if (max_ids.dtype() != DType::kI64 || max_ids.shape() != dout.shape())
        [[unlikely]] {
      return BadOperands(kName, "max_ids must be i64 of the shape of dout",
                         operands);
    }
  }
  ASSIGN_OR_RETURN(Backend* const backend, BackendFor(dout.device()));
  ASSIGN_OR_RETURN(const Tensor addends, dout.To(SumDType(dout.dtype())));
  ASSIGN_OR_RETURN(Tensor table,
                   ZeroTable(*backend, rows, dout.dim(1), addends));
  RETURN_IF_ERROR(
      backend->EmbeddingBagGrad(mode, addends, ids, offsets, max_ids, table));
  return table.To(dout.dtype());
}

}  // namespace hawser::tensor
