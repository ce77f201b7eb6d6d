// Checks that the operations of this folder make on what they are given.
//
// Each is kInvalidArgument where it fails, with a message that names the
// operation and every operand with its dtype, shape and device:
//   "Add: dtypes differ: a is f32[2, 3] on cpu, b is f64[3] on cpu"
#ifndef HAWSER_TENSOR_OPS_OPERANDS_H_
#define HAWSER_TENSOR_OPS_OPERANDS_H_

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensor/tensor.h"

namespace hawser::tensor {

struct Operand {
  std::string_view name;
  const Tensor& tensor;
};

using Operands = std::initializer_list<Operand>;

absl::Status BadOperands(std::string_view operation, std::string_view why,
                         Operands operands);

// All are defined and on one device. kFailedPrecondition if the gradient of one
// would be lost (tensor/lost_gradient.h).
absl::Status CheckOperands(std::string_view operation, Operands operands);
// And of one dtype.
absl::Status CheckSameDType(std::string_view operation, Operands operands);
// And of one floating-point dtype.
absl::Status CheckFloating(std::string_view operation, Operands operands);

// `ids` is i64 or i32.
absl::Status CheckIds(std::string_view operation, Operand ids);

// `dim` counted from the front; it may be negative.
absl::StatusOr<int> ResolveDim(std::string_view operation, int64_t dim,
                               const Tensor& tensor);

}  // namespace hawser::tensor

#endif  // HAWSER_TENSOR_OPS_OPERANDS_H_
