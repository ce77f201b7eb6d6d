#include "tensor/ops/matmul.h"

#include <limits>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "async/status_macros.h"
#include "gtest/gtest.h"
#include "tensor/backend/cuda/gemm.h"
#include "tensor/backend/cuda/testing/parity.h"
#include "tensor/backend/kernel_types.h"
#include "tensor/device.h"
#include "tensor/dtype.h"
#include "tensor/ops/test_tensors.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::tensor::cuda {
namespace {

using CudaMatMulTest = CudaTest;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// Tolerance for sums of a few tens of terms near 1.
double SumTolerance(DType dtype) { return 8 * Tolerance(dtype); }

TEST_F(CudaMatMulTest, Products) {
  const std::vector<std::pair<Shape, Shape>> pairs = {
      {{3}, {3}},
      {{3}, {3, 4}},
      {{2, 3}, {3}},
      {{2, 3}, {3, 4}},
      {{1, 1}, {1, 1}},
      {{1, 5}, {5, 1}},
      {{5, 1}, {1, 5}},
      {{17, 33}, {33, 9}},
      {{0, 3}, {3, 4}},
      {{2, 0}, {0, 4}},
      {{2, 3}, {3, 0}},
      {{2, 3, 4}, {4, 5}},
      {{2, 3, 4}, {2, 4, 5}},
      {{3, 4}, {2, 4, 5}},
      {{2, 1, 3, 4}, {1, 3, 4, 2}},
      {{2, 3, 2, 4}, {2, 3, 4, 2}},
      {{1, 2, 0}, {3, 0, 2}},
      {{0, 2, 3}, {3, 2}},
  };
  for (const DType dtype : kFloatDTypes) {
    for (const auto& [left, right] : pairs) {
      const Tensor a = TestTensor(left, dtype, 1, -1, 1);
      const Tensor b = TestTensor(right, dtype, 2, -1, 1);
      SCOPED_TRACE(testing::Message() << a.ToString() << b.ToString());
      ExpectSame(
          {a, b}, [](const auto& in) { return MatMul(in[0], in[1]); },
          SumTolerance(dtype));
    }
  }
}

TEST_F(CudaMatMulTest, TransposedAndBroadcastOperands) {
  for (const DType dtype : kFloatDTypes) {
    const Tensor a = TestTensor({4, 6}, dtype, 1, -1, 1);
    const Tensor b = TestTensor({5, 6}, dtype, 2, -1, 1);
    ExpectSame(
        {a, b}, [](const auto& in) { return MatMul(in[0], *in[1].T()); },
        SumTolerance(dtype));
    ExpectSame(
        {a, b}, [](const auto& in) { return MatMul(in[1], *in[0].T()); },
        SumTolerance(dtype));
    // Rows and batches repeated by stride 0.
    ExpectSame(
        {TestTensor({1, 6}, dtype), b},
        [](const auto& in) {
          return MatMul(*in[0].Expand({3, 6}), *in[1].T());
        },
        SumTolerance(dtype));
    ExpectSame(
        {a, b},
        [](const auto& in) {
          return MatMul(*in[0].Expand({2, 3, 4, 6}),
                        *in[1].T()->Unsqueeze(0)->Expand({3, 6, 5}));
        },
        SumTolerance(dtype));
  }
}

TEST_F(CudaMatMulTest, AccumulatesIntoStridedBatches) {
  const Tensor a = *TestTensor({3, 2, 4}).To(Cuda());
  const Tensor b = *TestTensor({3, 4, 5}, DType::kF32, 2).To(Cuda());
  Tensor whole = *Tensor::Ones({3, 2, 2, 5}).To(Cuda());
  Tensor out = *whole.Select(1, 1);
  ASSERT_TRUE(GemmBatches(a, b, /*beta=*/1, out).ok());
  std::vector<double> expected = Values(*MatMul(a, b));
  for (double& value : expected) value += 1;
  ExpectTensor(*out.To(kCpu), {3, 2, 5}, expected);
  ExpectTensor(*whole.Select(1, 0)->To(kCpu), {3, 2, 5},
               std::vector<double>(30, 1));
}

TEST_F(CudaMatMulTest, LinearLayers) {
  for (const DType dtype : kFloatDTypes) {
    for (const Shape& shape :
         std::vector<Shape>{{6}, {1, 6}, {7, 6}, {2, 3, 6}, {0, 6}}) {
      const Tensor x = TestTensor(shape, dtype, 1, -1, 1);
      const Tensor w = TestTensor({5, 6}, dtype, 2, -1, 1);
      for (const Tensor& bias : {Tensor(), TestTensor({5}, dtype, 3, -1, 1)}) {
        for (const Activation activation :
             {Activation::kNone, Activation::kRelu}) {
          ExpectSame(
              {x, w, bias},
              [&](const auto& in) {
                return Linear(in[0], in[1], in[2], activation);
              },
              SumTolerance(dtype));
        }
      }
    }
    const Tensor none = TestTensor({2, 0}, dtype);
    ExpectSame({none, TestTensor({3, 0}, dtype), TestTensor({3}, dtype)},
               [](const auto& in) { return Linear(in[0], in[1], in[2]); });
  }
}

TEST_F(CudaMatMulTest, ReluOfNaNIsNaN) {
  const Tensor x = FromValues({kNaN, 1, -1}, {3, 1});
  ExpectSame({x, Tensor::Ones({1, 1}), Tensor::Zeros({1})}, [](const auto& in) {
    return Linear(in[0], in[1], in[2], Activation::kRelu);
  });
}

TEST_F(CudaMatMulTest, GradientsOfLinearLayers) {
  for (const DType dtype : kFloatDTypes) {
    for (const int64_t rows : {0, 1, 7, 600}) {
      const Tensor x = TestTensor({rows, 6}, dtype, 1, -1, 1);
      const Tensor w = TestTensor({5, 6}, dtype, 2, -1, 1);
      const Tensor y = TestTensor({rows, 5}, dtype, 3, -1, 1);
      const Tensor dy = TestTensor({rows, 5}, dtype, 4, -0.1, 0.1);
      for (const Activation activation :
           {Activation::kNone, Activation::kRelu}) {
        for (Tensor LinearGradients::*const part :
             {&LinearGradients::x, &LinearGradients::w,
              &LinearGradients::bias}) {
          ExpectSame(
              {x, w, y, dy},
              [&](const auto& in) -> absl::StatusOr<Tensor> {
                ASSIGN_OR_RETURN(
                    const LinearGradients gradients,
                    LinearGrad(in[0], in[1], in[2], in[3], activation));
                return gradients.*part;
              },
              SumTolerance(dtype));
        }
      }
    }
  }
}

TEST_F(CudaMatMulTest, ThreadsHaveTheirOwnHandles) {
  const Tensor a = *TestTensor({8, 8}).To(Cuda());
  const std::vector<double> expected = Values(*MatMul(a, a));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 5; ++k) {
        ExpectTensor(*MatMul(a, a), {8, 8}, expected);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace hawser::tensor::cuda
