#include "tensor/ops/conv2d.h"

#include <limits>
#include <vector>

#include "absl/status/statusor.h"
#include "async/status_macros.h"
#include "gtest/gtest.h"
#include "tensor/backend/cuda/testing/parity.h"
#include "tensor/backend/kernel_types.h"
#include "tensor/dtype.h"
#include "tensor/ops/pool.h"
#include "tensor/ops/test_tensors.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::tensor::cuda {
namespace {

using CudaConv2dTest = CudaTest;
using CudaPool2dTest = CudaTest;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

struct Case {
  Shape x;
  Shape w;
  Conv2dOptions options;
};

const std::vector<Case> kCases = {
    {{1, 1, 1, 1}, {1, 1, 1, 1}, {}},
    {{2, 3, 7, 6}, {4, 3, 3, 2}, {}},
    {{2, 3, 7, 6}, {4, 3, 3, 3}, {.stride = {2, 3}, .padding = {1, 2}}},
    {{3, 2, 8, 9}, {2, 2, 3, 2}, {.padding = {2, 0}, .dilation = {2, 3}}},
    {{2, 4, 5, 5},
     {6, 2, 3, 3},
     {.stride = {2, 1}, .padding = {1, 1}, .groups = 2}},
    {{2, 4, 5, 5}, {4, 1, 3, 3}, {.padding = {1, 1}, .groups = 4}},
    {{0, 3, 5, 5}, {2, 3, 3, 3}, {}},
    {{2, 0, 5, 5}, {3, 0, 3, 3}, {}},
    {{2, 3, 5, 5}, {0, 3, 3, 3}, {}},
};

TEST_F(CudaConv2dTest, ForwardAndGradients) {
  for (const DType dtype : kFloatDTypes) {
    const double tolerance = 8 * Tolerance(dtype);
    for (const Case& c : kCases) {
      const Tensor x = TestTensor(c.x, dtype, 1, -1, 1);
      const Tensor w = TestTensor(c.w, dtype, 2, -0.5, 0.5);
      SCOPED_TRACE(testing::Message() << x.ToString() << w.ToString());
      for (const Tensor& bias :
           {Tensor(), TestTensor({c.w[0]}, dtype, 3, -1, 1)}) {
        ExpectSame(
            {x, w, bias},
            [&](const auto& in) {
              return Conv2d(in[0], in[1], in[2], c.options);
            },
            tolerance);
      }
      const Shape out = Conv2d(x, w, Tensor(), c.options)->shape();
      const Tensor dy = TestTensor(out, dtype, 4, -0.3, 0.3);
      ExpectSame(
          {dy, w},
          [&](const auto& in) {
            return Conv2dInputGrad(in[0], in[1], c.x, c.options);
          },
          tolerance);
      ExpectSame(
          {dy, x},
          [&](const auto& in) {
            return Conv2dWeightGrad(in[0], in[1], c.w, c.options);
          },
          tolerance);
      ExpectSame(
          {dy}, [](const auto& in) { return Conv2dBiasGrad(in[0]); },
          tolerance);
    }
  }
}

const std::vector<Pool2dOptions> kPools = {
    {.kernel = {2, 2}},
    {.kernel = {3, 2}, .stride = {1, 2}, .padding = {1, 1}},
    {.kernel = {2, 3},
     .stride = {2, 1},
     .padding = {1, 0},
     .count_include_pad = false},
    {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}},
};

TEST_F(CudaPool2dTest, MaxPool) {
  for (const DType dtype : kFloatDTypes) {
    for (const Shape& shape :
         std::vector<Shape>{{2, 3, 7, 6}, {1, 1, 3, 3}, {0, 2, 4, 4}}) {
      const Tensor x = TestTensor(shape, dtype);
      for (const Pool2dOptions& options : kPools) {
        ExpectSame({x}, [&](const auto& in) -> absl::StatusOr<Tensor> {
          ASSIGN_OR_RETURN(const MaxPool pool, MaxPool2d(in[0], options));
          return pool.values;
        });
        ExpectSame({x}, [&](const auto& in) -> absl::StatusOr<Tensor> {
          ASSIGN_OR_RETURN(const MaxPool pool, MaxPool2d(in[0], options));
          return pool.indices;
        });
        const MaxPool pool = *MaxPool2d(x, options);
        const Tensor dy = TestTensor(pool.values.shape(), dtype, 2);
        ExpectSame(
            {dy, pool.indices},
            [&](const auto& in) { return MaxPool2dGrad(in[0], in[1], shape); },
            4 * Tolerance(dtype));
      }
    }
  }
}

TEST_F(CudaPool2dTest, MaxPoolTakesTheFirstNaNAndTheFirstOfEquals) {
  const Tensor x = FromValues({1, kNaN, kNaN, 2, 5, 5, 5, -kInf, -kInf, -kInf,
                               -kInf, -kInf, 0, -0.0, 0, 0},
                              {1, 1, 4, 4});
  ExpectSame({x}, [](const auto& in) -> absl::StatusOr<Tensor> {
    ASSIGN_OR_RETURN(const MaxPool pool, MaxPool2d(in[0], {.kernel = {2, 2}}));
    return pool.indices;
  });
}

TEST_F(CudaPool2dTest, GradientOfAMaximumOfManyWindowsDoesNotStall) {
  for (const DType dtype : kFloatDTypes) {
    const Tensor dy = Tensor::Ones({1, 1, 64, 64}, {dtype});
    const Tensor indices = Tensor::Zeros({1, 1, 64, 64}, {DType::kI64});
    ExpectSame({dy, indices}, [](const auto& in) {
      return MaxPool2dGrad(in[0], in[1], {1, 1, 2, 2});
    });
  }
}

TEST_F(CudaPool2dTest, BadIndexOfMaxPoolIsNamed) {
  const Tensor dy = Tensor::Ones({1, 1, 1, 3});
  for (const int64_t bad : {-1, 8}) {
    const Tensor indices =
        Tensor::FromVector<int64_t>({0, bad, -7}, {1, 1, 1, 3});
    ExpectSame({dy, indices}, [](const auto& in) {
      return MaxPool2dGrad(in[0], in[1], {1, 1, 2, 4});
    });
  }
}

TEST_F(CudaPool2dTest, AvgPool) {
  for (const DType dtype : kFloatDTypes) {
    for (const Shape& shape :
         std::vector<Shape>{{2, 3, 7, 6}, {1, 1, 3, 3}, {0, 2, 4, 4}}) {
      const Tensor x = TestTensor(shape, dtype);
      for (const Pool2dOptions& options : kPools) {
        ExpectSame({x},
                   [&](const auto& in) { return AvgPool2d(in[0], options); });
        const Tensor dy = TestTensor(AvgPool2d(x, options)->shape(), dtype, 2);
        ExpectSame({dy}, [&](const auto& in) {
          return AvgPool2dGrad(in[0], shape, options);
        });
      }
    }
  }
}

}  // namespace
}  // namespace hawser::tensor::cuda
