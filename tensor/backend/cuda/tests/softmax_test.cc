#include "tensor/ops/softmax.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/status/statusor.h"
#include "async/status_macros.h"
#include "gtest/gtest.h"
#include "tensor/backend/cuda/testing/parity.h"
#include "tensor/dtype.h"
#include "tensor/ops/test_tensors.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::tensor::cuda {
namespace {

using CudaSoftmaxTest = CudaTest;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

const std::vector<Shape> kShapes = {{},     {1},    {0},       {5},
                                    {3, 7}, {0, 4}, {2, 3, 4}, {3, 300}};

TEST_F(CudaSoftmaxTest, SoftmaxAndItsGradient) {
  for (const DType dtype : kFloatDTypes) {
    for (const Shape& shape : kShapes) {
      const Tensor x = TestTensor(shape, dtype, 1, -4, 4);
      const Tensor dy = TestTensor(shape, dtype, 2, -1, 1);
      for (int dim = 0; dim < std::max(shape.rank(), 1); ++dim) {
        SCOPED_TRACE(testing::Message() << x.ToString() << " dim " << dim);
        ExpectSame({x}, [&](const auto& in) { return Softmax(in[0], dim); });
        ExpectSame({x}, [&](const auto& in) { return LogSoftmax(in[0], dim); });
        // The gradients' sums over rows differ in their last bits.
        ExpectSame(
            {*Softmax(x, dim), dy},
            [&](const auto& in) { return SoftmaxGrad(in[0], in[1], dim); },
            8 * Tolerance(dtype));
        ExpectSame(
            {*LogSoftmax(x, dim), dy},
            [&](const auto& in) { return LogSoftmaxGrad(in[0], in[1], dim); },
            16 * Tolerance(dtype));
      }
    }
  }
}

TEST_F(CudaSoftmaxTest, LargeAndSpecialValues) {
  for (const DType dtype : kFloatDTypes) {
    const Tensor x =
        FromValues({1000, 999, -1000, kNaN, 1, 2, -kInf, 0, 1, kInf, 0, 1,
                    -kInf, -kInf, -kInf, 6e4, 6e4, 6e4},
                   {6, 3}, dtype);
    ExpectSame({x}, [](const auto& in) { return Softmax(in[0], 1); });
    ExpectSame({x}, [](const auto& in) { return LogSoftmax(in[0], 1); });
  }
}

TEST_F(CudaSoftmaxTest, CrossEntropyAndItsGradient) {
  for (const DType dtype : kFloatDTypes) {
    for (const Shape& shape :
         std::vector<Shape>{{1, 1}, {4, 10}, {70, 3}, {3, 400}, {0, 5}}) {
      const Tensor logits = TestTensor(shape, dtype, 1, -4, 4);
      const Tensor labels =
          TestTensor({shape[0]}, DType::kI64, 2, 0, shape[1] - 1);
      for (Tensor CrossEntropy::*const part :
           {&CrossEntropy::loss, &CrossEntropy::probs}) {
        ExpectSame({logits, labels},
                   [&](const auto& in) -> absl::StatusOr<Tensor> {
                     ASSIGN_OR_RETURN(const CrossEntropy result,
                                      SoftmaxCrossEntropy(in[0], in[1]));
                     return result.*part;
                   });
      }
      const Tensor probs = SoftmaxCrossEntropy(logits, labels)->probs;
      const Tensor dloss = Tensor::Scalar(2.5, {dtype});
      ExpectSame({probs, labels, dloss}, [](const auto& in) {
        return SoftmaxCrossEntropyGrad(in[0], in[1], in[2]);
      });
    }
  }
}

TEST_F(CudaSoftmaxTest, LossDoesNotUnderflow) {
  const Tensor logits = FromValues({500, -500}, {1, 2});
  const Tensor labels = Tensor::FromVector<int64_t>({1}, {1});
  ExpectSame({logits, labels}, [](const auto& in) -> absl::StatusOr<Tensor> {
    ASSIGN_OR_RETURN(const CrossEntropy result,
                     SoftmaxCrossEntropy(in[0], in[1]));
    return result.loss;
  });
}

TEST_F(CudaSoftmaxTest, BadLabelIsNamed) {
  const Tensor logits = TestTensor({3, 4});
  for (const int64_t bad : {-1, 4}) {
    const Tensor labels = Tensor::FromVector<int64_t>({0, bad, 3}, {3});
    ExpectSame({logits, labels}, [](const auto& in) -> absl::StatusOr<Tensor> {
      return SoftmaxCrossEntropy(in[0], in[1]).status();
    });
    ExpectSame({logits, labels, Tensor::Ones({})}, [](const auto& in) {
      return SoftmaxCrossEntropyGrad(in[0], in[1], in[2]);
    });
  }
}

}  // namespace
}  // namespace hawser::tensor::cuda
