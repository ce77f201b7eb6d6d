#ifndef DOWNSTREAM_COLUMN_H_
#define DOWNSTREAM_COLUMN_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rpc/functions/function.h"
#include "rpc/functions/function_registry.h"
#include "tensor/tensor.h"

// Returns the elements of column `index` of a float32 matrix. kInvalidArgument
// for other tensors; kOutOfRange if the column does not exist.
absl::StatusOr<std::vector<float>> Column(const hawser::Tensor& matrix,
                                          int64_t index);

// Column() as a remote function.
inline constexpr hawser::rpc::Function<std::vector<float>(hawser::Tensor,
                                                          int64_t)>
    kColumn{"downstream.Column"};

// Registers kColumn, so that other workers can call it.
absl::Status ServeColumn(hawser::rpc::FunctionRegistry& registry);

#endif  // DOWNSTREAM_COLUMN_H_
