// Range checks of ids, labels and indices in device memory.
#ifndef HAWSER_TENSOR_BACKEND_CUDA_IDS_H_
#define HAWSER_TENSOR_BACKEND_CUDA_IDS_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensor/tensor.h"

namespace hawser::tensor::cuda {

// Returns `ids`, i64 or i32 of any strides, as contiguous i64. kOutOfRange if
// one is not in [lowest, limit), naming `operation`, the first such id and its
// position. Waits for the device, since an unchecked id could make a kernel
// access memory out of bounds.
absl::StatusOr<Tensor> CheckedIds(std::string_view operation, const Tensor& ids,
                                  int64_t limit, int64_t lowest = 0);

absl::Status IdOutOfRange(std::string_view operation, int64_t position,
                          int64_t id, int64_t limit);

}  // namespace hawser::tensor::cuda

#endif  // HAWSER_TENSOR_BACKEND_CUDA_IDS_H_
