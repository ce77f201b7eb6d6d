#ifndef COLUMN_H_
#define COLUMN_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "tensor/tensor.h"

// The elements of column `index` of a float32 matrix.
// kInvalidArgument unless `matrix` is one; kOutOfRange without such a column.
absl::StatusOr<std::vector<float>> Column(const hawser::Tensor& matrix,
                                          int64_t index);

#endif  // COLUMN_H_
