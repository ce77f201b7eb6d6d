// A data set in npy files.

#ifndef HAWSER_DATA_NPY_DATASET_H_
#define HAWSER_DATA_NPY_DATASET_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "data/dataset.h"
#include "tensor/io/npy_rows.h"
#include "tensor/tensor.h"

namespace hawser::data {

// Arrays of which row i is a part of sample i, each in a file of its own, such
// as images.npy and labels.npy. Fetch reads the rows of its samples from the
// files, which stay open and may be larger than the memory, and gives a tensor
// for each file, of its dtype.
//
// Thread-safe. The files must not change; a row that a file lost is kDataLoss.
class NpyDataset final : public Dataset {
 public:
  // Errors of NpyRows::Open (tensor/io/npy_rows.h), and kInvalidArgument if
  // there is no file, or if files differ in the number of rows.
  static absl::StatusOr<std::shared_ptr<const NpyDataset>> Open(
      const std::vector<std::string>& paths);

  int64_t count() const override { return files_.front().num_rows(); }
  absl::StatusOr<std::vector<Tensor>> Fetch(
      std::span<const int64_t> indices) const override;

 private:
  explicit NpyDataset(std::vector<tensor::NpyRows> files)
      : files_(std::move(files)) {}

  const std::vector<tensor::NpyRows> files_;
};

}  // namespace hawser::data

#endif  // HAWSER_DATA_NPY_DATASET_H_
