#include "data/tensor_dataset.h"

#include <cstddef>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"

namespace hawser::data {
namespace {

absl::StatusOr<Tensor> GatherRows(const Tensor& column,
                                  std::span<const int64_t> indices) {
  std::vector<int64_t> dims(column.shape().begin(), column.shape().end());
  dims[0] = 1;
  const auto row_bytes = static_cast<size_t>(
      tensor::Shape(dims).num_elements() * tensor::ItemBytes(column.dtype()));
  dims[0] = static_cast<int64_t>(indices.size());
  ASSIGN_OR_RETURN(Tensor rows, Tensor::TryEmpty(tensor::Shape(dims),
                                                 {.dtype = column.dtype()}));
  if (row_bytes == 0) return rows;
  const auto* from = static_cast<const std::byte*>(column.raw_data());
  auto* to = static_cast<std::byte*>(rows.raw_data());
  for (const int64_t index : indices) {
    std::memcpy(to, from + static_cast<size_t>(index) * row_bytes, row_bytes);
    to += row_bytes;
  }
  return rows;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const TensorDataset>> TensorDataset::Create(
    std::vector<Tensor> columns) {
  if (columns.empty()) {
    return absl::InvalidArgumentError("a data set needs at least one column");
  }
  for (size_t i = 0; i < columns.size(); ++i) {
    Tensor& column = columns[i];
    if (!column.defined() || column.rank() == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("column ", i, " is ",
                       column.defined() ? column.ToString() : "undefined",
                       "; it must have a row for each sample"));
    }
    if (column.dim(0) != columns[0].dim(0)) {
      return absl::InvalidArgumentError(
          absl::StrCat("column ", i, " has ", column.dim(0),
                       " samples, but column 0 has ", columns[0].dim(0)));
    }
    ASSIGN_OR_RETURN(column, column.Detach().To(tensor::kCpu));
    ASSIGN_OR_RETURN(column, column.Contiguous());
  }
  return std::shared_ptr<const TensorDataset>(
      new TensorDataset(std::move(columns)));
}

absl::StatusOr<std::vector<Tensor>> TensorDataset::Fetch(
    std::span<const int64_t> indices) const {
  RETURN_IF_ERROR(CheckIndices(indices, count()));
  std::vector<Tensor> batch;
  batch.reserve(columns_.size());
  for (const Tensor& column : columns_) {
    ASSIGN_OR_RETURN(Tensor rows, GatherRows(column, indices));
    batch.push_back(std::move(rows));
  }
  return batch;
}

}  // namespace hawser::data
