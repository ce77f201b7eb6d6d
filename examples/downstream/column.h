#ifndef DOWNSTREAM_COLUMN_H_
#define DOWNSTREAM_COLUMN_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rpc/functions/function.h"
#include "rpc/functions/function_registry.h"
#include "tensor/tensor.h"

// The elements of column `index` of a float32 matrix.
// kInvalidArgument unless `matrix` is one; kOutOfRange without such a column.
absl::StatusOr<std::vector<float>> Column(const hawser::Tensor& matrix,
                                          int64_t index);

// Column() on another worker.
inline constexpr hawser::rpc::Function<std::vector<float>(hawser::Tensor,
                                                          int64_t)>
    kColumn{"downstream.Column"};

// Lets other workers call kColumn here.
absl::Status ServeColumn(hawser::rpc::FunctionRegistry& registry);

#endif  // DOWNSTREAM_COLUMN_H_
