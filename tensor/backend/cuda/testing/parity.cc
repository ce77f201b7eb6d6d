#include "tensor/backend/cuda/testing/parity.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "tensor/device.h"
#include "tensor/memory/device_allocators.h"
#include "tensor/ops/test_tensors.h"
#include "tensor/tensor.h"

namespace hawser::tensor::cuda {

void CudaTest::SetUp() {
  const auto allocator = AllocatorFor(Cuda());
  if (!allocator.ok()) GTEST_SKIP() << "no GPU: " << allocator.status();
}

void ExpectSame(const std::vector<Tensor>& inputs, const Operation& operation,
                double tolerance) {
  const absl::StatusOr<Tensor> expected = operation(inputs);
  std::vector<std::vector<Tensor>> layouts;
  size_t num_layouts = 1;
  for (const Tensor& input : inputs) {
    layouts.push_back({input});
    if (input.defined()) layouts.back() = Layouts(*input.To(Cuda()));
    num_layouts = std::max(num_layouts, layouts.back().size());
  }
  for (size_t i = 0; i < num_layouts; ++i) {
    SCOPED_TRACE(testing::Message() << "layout " << i);
    std::vector<Tensor> moved;
    for (const auto& layout : layouts) {
      moved.push_back(layout[i % layout.size()]);
    }
    const absl::StatusOr<Tensor> actual = operation(moved);
    ASSERT_EQ(actual.status(), expected.status());
    if (!expected.ok()) return;
    ASSERT_EQ(actual->device(), Cuda());
    ASSERT_EQ(actual->dtype(), expected->dtype());
    ExpectTensor(*actual->To(kCpu), expected->shape(), Values(*expected),
                 tolerance > 0 ? tolerance : 2 * Tolerance(actual->dtype()));
    if (testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace hawser::tensor::cuda
