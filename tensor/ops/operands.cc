#include "tensor/ops/operands.h"

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "tensor/dtype.h"
#include "tensor/lost_gradient.h"
#include "tensor/tensor.h"

namespace hawser::tensor {
namespace {

absl::string_view View(std::string_view s) { return {s.data(), s.size()}; }

absl::Status LosesGradient(std::string_view operation, const Operand& operand) {
  // Steps of backward passes, which are not differentiated themselves.
  const bool is_gradient = operation.ends_with("Grad");
  return LostGradientError(
      operation,
      absl::StrCat(View(operand.name), " is ", operand.tensor.ToString(),
                   " and"),
      is_gradient ? "" : absl::StrCat("autograd::", View(operation)));
}

}  // namespace

absl::Status BadOperands(std::string_view operation, std::string_view why,
                         Operands operands) {
  std::string message = absl::StrCat(View(operation), ": ", View(why));
  const char* separator = ": ";
  for (const Operand& operand : operands) {
    absl::StrAppend(
        &message, separator, View(operand.name), " is ",
        operand.tensor.defined() ? operand.tensor.ToString() : "undefined");
    separator = ", ";
  }
  return absl::InvalidArgumentError(message);
}

absl::Status CheckOperands(std::string_view operation, Operands operands) {
  const Tensor& first = operands.begin()->tensor;
  for (const Operand& operand : operands) {
    if (!operand.tensor.defined()) [[unlikely]] {
      return BadOperands(operation, "an operand is undefined", operands);
    }
    if (operand.tensor.device() != first.device()) [[unlikely]] {
      return BadOperands(operation, "operands are on different devices",
                         operands);
    }
    if (WouldLoseGradient(operand.tensor)) [[unlikely]] {
      return LosesGradient(operation, operand);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckSameDType(std::string_view operation, Operands operands) {
  if (absl::Status status = CheckOperands(operation, operands); !status.ok()) {
    return status;
  }
  const DType dtype = operands.begin()->tensor.dtype();
  for (const Operand& operand : operands) {
    if (operand.tensor.dtype() != dtype) [[unlikely]] {
      return BadOperands(operation, "dtypes differ", operands);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckFloating(std::string_view operation, Operands operands) {
  if (absl::Status status = CheckSameDType(operation, operands); !status.ok()) {
    return status;
  }
  if (!IsFloatingPoint(operands.begin()->tensor.dtype())) [[unlikely]] {
    return BadOperands(operation, "needs a floating-point dtype", operands);
  }
  return absl::OkStatus();
}

absl::Status CheckIds(std::string_view operation, Operand ids) {
  const DType dtype = ids.tensor.dtype();
  if (dtype != DType::kI64 && dtype != DType::kI32) [[unlikely]] {
    return BadOperands(operation, "indices must be i64 or i32", {ids});
  }
  return absl::OkStatus();
}

absl::StatusOr<int> ResolveDim(std::string_view operation, int64_t dim,
                               const Tensor& tensor) {
  const int rank = tensor.rank();
  if (dim < -rank || dim >= rank) [[unlikely]] {
    return absl::InvalidArgumentError(absl::StrCat(View(operation), ": dim ",
                                                   dim, " is out of range for ",
                                                   tensor.ToString()));
  }
  return static_cast<int>(dim < 0 ? dim + rank : dim);
}

}  // namespace hawser::tensor
