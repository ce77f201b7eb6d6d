#include "tensor/backend/cpu/ids.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "tensor/backend/cpu/block_io.h"
#include "tensor/backend/cpu/loop_plan.h"
#include "tensor/tensor.h"

namespace hawser::tensor::cpu {

absl::Status IdOutOfRange(std::string_view operation, int64_t position,
                          int64_t id, int64_t limit) {
  return absl::OutOfRangeError(absl::StrCat(
      absl::string_view(operation.data(), operation.size()), ": id ", id,
      " at position ", position, " is not in [0, ", limit, ")"));
}

absl::StatusOr<std::vector<int64_t>> ReadIds(std::string_view operation,
                                             const Tensor& ids, int64_t limit) {
  std::vector<int64_t> result(static_cast<size_t>(ids.num_elements()));
  const LoopPlan<1> plan(ids.shape(), {&ids});
  int64_t* next = result.data();
  plan.ForEachRow([&](const auto& offsets) {
    const int64_t n = plan.row_size();
    const int64_t* const row = ReadBlock(
        ids.dtype(), ids.raw_data(), offsets[0], plan.row_stride(0), n, next);
    if (row != next) std::copy_n(row, n, next);
    next += n;
  });
  for (size_t i = 0; i < result.size(); ++i) {
    if (result[i] < 0 || result[i] >= limit) [[unlikely]] {
      return IdOutOfRange(operation, static_cast<int64_t>(i), result[i], limit);
    }
  }
  return result;
}

}  // namespace hawser::tensor::cpu
