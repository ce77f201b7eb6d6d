// A data set with access to each sample by its index.

#ifndef HAWSER_DATA_DATASET_H_
#define HAWSER_DATA_DATASET_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensor/tensor.h"

namespace hawser::data {

// Implementations are thread-safe and immutable: the same indices always give
// the same elements.
class Dataset {
 public:
  virtual ~Dataset() = default;

  // The number of samples.
  virtual int64_t count() const = 0;

  // Returns the samples `indices`, in that order, as tensors with one row per
  // sample. An index may appear more than once.
  //
  // Each tensor is contiguous, on the CPU, of memory of its own, and has the
  // shape [indices.size(), ...]. The number of tensors, their dtypes and their
  // other sizes are the same in each call.
  //
  // kOutOfRange: an index is not in [0, count()). Other errors name the file
  // and the place in it, if there is one.
  virtual absl::StatusOr<std::vector<Tensor>> Fetch(
      std::span<const int64_t> indices) const = 0;
};

// kOutOfRange, naming the first index that is not in [0, count). For
// implementations of Dataset::Fetch.
absl::Status CheckIndices(std::span<const int64_t> indices, int64_t count);

}  // namespace hawser::data

#endif  // HAWSER_DATA_DATASET_H_
