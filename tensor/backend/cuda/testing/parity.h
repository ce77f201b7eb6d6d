// Fixture of the tests of this folder: operations give the same results on a
// CUDA device as on the CPU.
#ifndef HAWSER_TENSOR_BACKEND_CUDA_TESTING_PARITY_H_
#define HAWSER_TENSOR_BACKEND_CUDA_TESTING_PARITY_H_

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace hawser::tensor::cuda {

// Skips its tests, each by name, where there is no GPU.
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
// the first CUDA device that lie in memory in several ways. Status, dtype,
// shape and elements must be the same; elements within `tolerance` (0: twice
// that of the dtype), relative to the larger of 1 and their magnitude. An
// undefined input stays undefined.
void ExpectSame(const std::vector<Tensor>& inputs, const Operation& operation,
                double tolerance = 0);

}  // namespace hawser::tensor::cuda

#endif  // HAWSER_TENSOR_BACKEND_CUDA_TESTING_PARITY_H_
