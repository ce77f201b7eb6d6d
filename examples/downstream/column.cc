#include "column.h"

#include "absl/status/status.h"
#include "async/status_macros.h"

absl::StatusOr<std::vector<float>> Column(const hawser::Tensor& matrix,
                                          int64_t index) {
  if (matrix.rank() != 2 || matrix.dtype() != hawser::tensor::DType::kF32) {
    return absl::InvalidArgumentError("the argument must be an f32 matrix: " +
                                      matrix.ToString());
  }
  ASSIGN_OR_RETURN(const hawser::Tensor column,
                   matrix.Detach().Select(1, index));
  return column.ToVector<float>();
}

absl::Status ServeColumn(hawser::rpc::FunctionRegistry& registry) {
  return registry.Register(kColumn, Column);
}
