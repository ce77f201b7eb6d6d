#include "tensor/ops/random.h"

#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "tensor/backend/cuda/testing/parity.h"
#include "tensor/device.h"
#include "tensor/dtype.h"
#include "tensor/ops/test_tensors.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::tensor::cuda {
namespace {

using CudaRandomTest = CudaTest;

// Checks that draw(generator, options) gives the same numbers on both devices,
// from odd and even offsets on.
template <class Draw>
void ExpectSameNumbers(DType dtype, double tolerance, Draw&& draw) {
  for (const uint64_t offset : {0, 1, 7}) {
    Generator here(123, offset), there(123, offset);
    for (int i = 0; i < 2; ++i) {
      const Tensor expected = *draw(here, TensorOptions{dtype, kCpu});
      const Tensor actual = *draw(there, TensorOptions{dtype, Cuda()});
      ASSERT_EQ(actual.device(), Cuda());
      ASSERT_EQ(actual.dtype(), dtype);
      ExpectTensor(*actual.To(kCpu), expected.shape(), Values(expected),
                   tolerance);
    }
    EXPECT_EQ(here.offset(), there.offset());
  }
}

TEST_F(CudaRandomTest, UniformEqualsTheCpuBitForBit) {
  for (const DType dtype : kFloatDTypes) {
    for (const Shape& shape : std::vector<Shape>{{}, {0}, {1}, {3, 5}, {999}}) {
      ExpectSameNumbers(dtype, 1e-300, [&](auto& generator, auto options) {
        return Uniform(shape, -1.5, 3, generator, options);
      });
    }
  }
}

TEST_F(CudaRandomTest, NormalEqualsTheCpuUpToTheLastBit) {
  for (const DType dtype : kFloatDTypes) {
    ExpectSameNumbers(dtype, 0, [](auto& generator, auto options) {
      return Normal({1001}, 2, 3, generator, options);
    });
  }
}

TEST_F(CudaRandomTest, BernoulliOfEveryDType) {
  for (const DType dtype : kAllDTypes) {
    ExpectSameNumbers(dtype, 1e-300, [](auto& generator, auto options) {
      return Bernoulli({50, 3}, 0.3, generator, options);
    });
  }
}

}  // namespace
}  // namespace hawser::tensor::cuda
