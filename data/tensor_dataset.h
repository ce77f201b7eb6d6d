// A data set in memory.

#ifndef HAWSER_DATA_TENSOR_DATASET_H_
#define HAWSER_DATA_TENSOR_DATASET_H_

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "data/dataset.h"
#include "tensor/tensor.h"

namespace hawser::data {

// Tensors of which row i is a part of sample i: columns of a data set, such as
// images and labels. Fetch copies rows, and gives a tensor for each column.
//
// Thread-safe.
class TensorDataset final : public Dataset {
 public:
  // Takes columns of any dtype and strides. The data set shares the memory of
  // those that are contiguous and on the CPU, whose elements must not change.
  //
  // kInvalidArgument: there is no column, one is undefined or a scalar, or they
  // differ in the number of rows. kResourceExhausted: not enough memory.
  static absl::StatusOr<std::shared_ptr<const TensorDataset>> Create(
      std::vector<Tensor> columns);

  int64_t count() const override { return columns_.front().dim(0); }
  absl::StatusOr<std::vector<Tensor>> Fetch(
      std::span<const int64_t> indices) const override;

 private:
  explicit TensorDataset(std::vector<Tensor> columns)
      : columns_(std::move(columns)) {}

  const std::vector<Tensor> columns_;
};

}  // namespace hawser::data

#endif  // HAWSER_DATA_TENSOR_DATASET_H_
