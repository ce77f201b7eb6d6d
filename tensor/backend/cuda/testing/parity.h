// Test fixture that compares the results of operations on a CUDA device with
// those on the CPU.
#ifndef HAWSER_TENSOR_BACKEND_CUDA_TESTING_PARITY_H_
#define HAWSER_TENSOR_BACKEND_CUDA_TESTING_PARITY_H_

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace hawser::tensor::cuda {

// Skips its tests if there is no GPU.
class CudaTest : public testing::Test {
 protected:
  void SetUp() override;
};

inline constexpr DType kIntegerDTypes[] = {DType::kI64, DType::kI32,
                                           DType::kU8};
inline constexpr DType kAllDTypes[] = {DType::kF32,  DType::kF64, DType::kF16,
                                       DType::kBF16, DType::kI64, DType::kI32,
                                       DType::kU8,   DType::kBool};

using Operation =
    std::function<absl::StatusOr<Tensor>(const std::vector<Tensor>& inputs)>;

// Runs `operation` on `inputs`, which are on the CPU, and on copies of them on
// the first CUDA device in several memory layouts. Expects equal status, dtype
// and shape, and elements equal within `tolerance` (0: twice that of the
// dtype), relative to the larger of 1 and their magnitude. An undefined input
// stays undefined.
void ExpectSame(const std::vector<Tensor>& inputs, const Operation& operation,
                double tolerance = 0);

}  // namespace hawser::tensor::cuda

#endif  // HAWSER_TENSOR_BACKEND_CUDA_TESTING_PARITY_H_
