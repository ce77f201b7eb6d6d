#include "ps/table_arguments.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "ps/read/read_function.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::ps {

absl::Status CheckKeys(const Tensor& keys) {
  if (keys.defined() && keys.dtype() == tensor::DType::kI64 &&
      keys.device().is_cpu()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("keys must be i64 on cpu, not ",
                   keys.defined() ? keys.ToString() : "undefined"));
}

absl::Status CheckBags(const Tensor& keys) {
  RETURN_IF_ERROR(CheckKeys(keys));
  if (keys.rank() > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "keys of bags must be i64[bags..., n], not a scalar");
}

tensor::Shape SumsShape(const Tensor& keys, int64_t width) {
  std::vector<int64_t> sizes(keys.shape().begin(), keys.shape().end());
  sizes.back() = width;
  return tensor::Shape(sizes);
}

absl::Status CheckRows(const Tensor& rows, const tensor::Shape& expected,
                       const std::string& name) {
  if (rows.defined() && rows.dtype() == tensor::DType::kF32 &&
      rows.shape() == expected && rows.device().is_cpu()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(name, " must be f32", expected.ToString(), " on cpu, not ",
                   rows.defined() ? rows.ToString() : "undefined"));
}

absl::StatusOr<std::vector<Tensor>> CheckArguments(
    const std::string& function, const std::vector<Tensor>& arguments) {
  if (function.empty() && !arguments.empty()) {
    return absl::InvalidArgumentError(
        "arguments of a pull need the name of a read function");
  }
  std::vector<Tensor> dense;
  size_t bytes = 0;
  for (const Tensor& argument : arguments) {
    if (!argument.defined() || argument.dtype() != tensor::DType::kF32 ||
        !argument.device().is_cpu()) {
      return absl::InvalidArgumentError(
          absl::StrCat("arguments of read function \"", function,
                       "\" must be f32 on cpu, not ",
                       argument.defined() ? argument.ToString() : "undefined"));
    }
    bytes += static_cast<size_t>(argument.num_elements()) * sizeof(float);
    ASSIGN_OR_RETURN(dense.emplace_back(), argument.Detach().Contiguous());
  }
  if (dense.size() <= kMaxReadArguments &&
      bytes <= static_cast<size_t>(kMaxReadArgumentBytes)) {
    return dense;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("read function \"", function, "\" takes at most ",
                   kMaxReadArguments, " arguments of ", kMaxReadArgumentBytes,
                   " bytes together, not ", dense.size(), " of ", bytes));
}

tensor::Shape RowsShape(const Tensor& keys, int64_t width) {
  std::vector<int64_t> sizes(keys.shape().begin(), keys.shape().end());
  sizes.push_back(width);
  return tensor::Shape(sizes);
}

std::span<const uint64_t> Numbers(const Tensor& keys) {
  return {reinterpret_cast<const uint64_t*>(keys.data<int64_t>()),
          static_cast<size_t>(keys.num_elements())};
}

}  // namespace hawser::ps
