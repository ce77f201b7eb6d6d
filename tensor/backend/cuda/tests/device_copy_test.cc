#include "tensor/backend/cuda/device_copy.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensor/backend/cuda/testing/parity.h"
#include "tensor/device.h"
#include "tensor/dtype.h"
#include "tensor/ops/test_tensors.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::tensor::cuda {
namespace {

using async::IsOk;

using CudaCopyTest = CudaTest;

const std::vector<Shape> kShapes = {{},     {0},       {1},         {7},
                                    {3, 5}, {2, 0, 3}, {4, 1, 3, 2}};

// Values with special conversions.
const std::vector<double> kSpecial = {0,
                                      -0.0,
                                      1,
                                      -1,
                                      0.5,
                                      -0.5,
                                      1.75,
                                      255,
                                      256,
                                      -129,
                                      65504,
                                      65520,
                                      1e10,
                                      -1e10,
                                      3e38,
                                      1e300,
                                      1e-8,
                                      2.5,
                                      3.5,
                                      1.00390625,
                                      1 + 0x1p-11 + 0x1p-40,
                                      1 + 0x1p-8 + 0x1p-40,
                                      0x1p30 + 0x1p22 + 1,
                                      std::numeric_limits<double>::infinity(),
                                      -std::numeric_limits<double>::infinity(),
                                      std::numeric_limits<double>::quiet_NaN()};

TEST_F(CudaCopyTest, RoundTripsThroughTheDevice) {
  for (const DType dtype : kAllDTypes) {
    for (const Shape& shape : kShapes) {
      const Tensor t = TestTensor(shape, dtype, 1, 0, 9);
      const Tensor there = *t.To(Cuda());
      EXPECT_EQ(there.device(), Cuda());
      ExpectTensor(*there.To(kCpu), shape, Values(t));
      for (const Tensor& layout : Layouts(t)) {
        ExpectTensor(*layout.To(Cuda())->To(kCpu), shape, Values(t));
      }
      for (const Tensor& layout : Layouts(there)) {
        ExpectTensor(*layout.To(kCpu), shape, Values(t));
        ExpectTensor(*layout.Contiguous()->To(kCpu), shape, Values(t));
      }
    }
  }
}

TEST_F(CudaCopyTest, ConvertsAsTheCpuDoes) {
  const auto count = static_cast<int64_t>(kSpecial.size());
  for (const DType from : kAllDTypes) {
    // Only finite values if the source is an integer.
    const Tensor source = FromValues(kSpecial, {count}, from);
    for (const DType to : kAllDTypes) {
      SCOPED_TRACE(testing::Message() << from << " to " << to);
      ExpectSame({source}, [&](const auto& in) { return in[0].To(to); });
    }
  }
}

TEST_F(CudaCopyTest, WideIntegersAreRoundedOnce) {
  const Tensor wide = Tensor::FromVector<int64_t>(
      {(int64_t{1} << 62) + (int64_t{1} << 54) + 1, INT64_MIN, 2049}, {3});
  const Tensor narrow = Tensor::FromVector<int32_t>(
      {(int32_t{1} << 30) + (1 << 22) + 1, INT32_MIN, 2051}, {3});
  for (const DType to : {DType::kF16, DType::kBF16}) {
    for (const Tensor& source : {wide, narrow}) {
      // Any other number would be farther off than this.
      ExpectSame(
          {source}, [&](const auto& in) { return in[0].To(to); }, 1e-9);
    }
  }
}

TEST_F(CudaCopyTest, WideIntegersKeepTheirLowBits) {
  const Tensor wide = Tensor::FromVector<int64_t>(
      {INT64_MIN, INT64_MAX, int64_t{1} << 40 | 77, -3}, {4});
  for (const DType to : {DType::kI32, DType::kU8, DType::kBool}) {
    ExpectSame({wide}, [&](const auto& in) { return in[0].To(to); });
  }
}

TEST_F(CudaCopyTest, CopiesAcrossDevicesChangeStridesAndDType) {
  const Shape shape = {3, 4};
  const Tensor source = TestTensor(shape, DType::kF32, 1, -5, 5);
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kI32}) {
    const std::vector<double> expected = Values(*source.To(dtype));
    for (const Device from : {kCpu, Cuda()}) {
      for (const Device to : {kCpu, Cuda()}) {
        const Tensor here = *source.To(from);
        for (const Tensor& in : Layouts(here)) {
          Tensor empty = *Tensor::Zeros(shape, {dtype}).To(to);
          for (Tensor& out : Layouts(empty)) {
            EXPECT_THAT(out.CopyFrom(in), IsOk());
            ExpectTensor(*out.To(kCpu), shape, expected);
          }
        }
      }
    }
  }
}

TEST_F(CudaCopyTest, CopyIntoAViewLeavesTheRestAlone) {
  Tensor whole = *Tensor::Zeros({4, 4}).To(Cuda());
  Tensor middle = *whole.Narrow(1, 1, 2)->Slice(0, 0, 4, 2);
  EXPECT_THAT(middle.CopyFrom(*Tensor::Ones({2, 2}).To(Cuda())), IsOk());
  ExpectTensor(*whole.To(kCpu), {4, 4},
               {0, 1, 1, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0});
}

TEST_F(CudaCopyTest, BroadcastSourceRepeats) {
  const Tensor row = *Tensor::FromVector<float>({1, 2, 3}, {3}).To(Cuda());
  Tensor out = Tensor::Empty({2, 3}, {.device = Cuda()});
  EXPECT_THAT(CopyOnDevice(out, row), IsOk());
  ExpectTensor(*out.To(kCpu), {2, 3}, {1, 2, 3, 1, 2, 3});
  ExpectTensor(*row.Expand({2, 3})->Contiguous()->To(kCpu), {2, 3},
               {1, 2, 3, 1, 2, 3});
}

TEST_F(CudaCopyTest, ItemAndVectorReadDeviceMemory) {
  const Tensor t = *Tensor::FromVector<int64_t>({4, 5, 6}, {3}).To(Cuda());
  EXPECT_EQ(t.ToVector<int64_t>(), (std::vector<int64_t>{4, 5, 6}));
  EXPECT_EQ(*t.Select(0, 1)->item<double>(), 5);
}

TEST_F(CudaCopyTest, LargeTensorsTakeSeveralItemsPerThread) {
  constexpr int64_t kRows = 5000, kCols = 4001;
  const Tensor t = *Tensor::Arange(kRows * kCols, {DType::kI32})
                        .View({kRows, kCols})
                        ->To(Cuda());
  const Tensor turned = *t.T()->Contiguous()->To(kCpu);
  const int32_t* const p = turned.data<int32_t>();
  for (int64_t i = 0; i < kCols; i += 97) {
    for (int64_t j = 0; j < kRows; j += 89) {
      ASSERT_EQ(p[i * kRows + j], j * kCols + i);
    }
  }
}

}  // namespace
}  // namespace hawser::tensor::cuda
