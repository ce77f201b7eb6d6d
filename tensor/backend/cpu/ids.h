// Reading of ids, labels and indices in host memory with range checks.
#ifndef HAWSER_TENSOR_BACKEND_CPU_IDS_H_
#define HAWSER_TENSOR_BACKEND_CPU_IDS_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensor/tensor.h"

namespace hawser::tensor::cpu {

// Returns the i64 or i32 elements of `ids`, of any strides, in order.
// kOutOfRange if one is not in [0, limit), naming `operation`, the id and its
// position.
absl::StatusOr<std::vector<int64_t>> ReadIds(std::string_view operation,
                                             const Tensor& ids, int64_t limit);

absl::Status IdOutOfRange(std::string_view operation, int64_t position,
                          int64_t id, int64_t limit);

}  // namespace hawser::tensor::cpu

#endif  // HAWSER_TENSOR_BACKEND_CPU_IDS_H_
