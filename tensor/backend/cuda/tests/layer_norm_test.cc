#include "tensor/ops/layer_norm.h"

#include <cstddef>
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

using CudaLayerNormTest = CudaTest;

const std::vector<Shape> kShapes = {{5},    {3, 7},   {70, 40}, {2, 3, 4},
                                    {0, 4}, {2, 300}, {1, 1}};

TEST_F(CudaLayerNormTest, OutputAndStatistics) {
  for (const DType dtype : kFloatDTypes) {
    for (const Shape& shape : kShapes) {
      const Tensor x = TestTensor(shape, dtype);
      const Shape last = {shape[shape.rank() - 1]};
      const std::vector<std::vector<Tensor>> parameters = {
          {Tensor(), Tensor()},
          {TestTensor(last, dtype, 2), Tensor()},
          {Tensor(), TestTensor(last, dtype, 3)},
          {TestTensor(last, dtype, 2), TestTensor(last, dtype, 3)}};
      for (const auto& parameter : parameters) {
        for (Tensor LayerNormResult::*const part :
             {&LayerNormResult::y, &LayerNormResult::mean,
              &LayerNormResult::rstd}) {
          SCOPED_TRACE(testing::Message() << x.ToString());
          ExpectSame(
              {x, parameter[0], parameter[1]},
              [&](const auto& in) -> absl::StatusOr<Tensor> {
                ASSIGN_OR_RETURN(const LayerNormResult result,
                                 LayerNorm(in[0], 1, in[1], in[2]));
                return result.*part;
              },
              8 * Tolerance(dtype));
        }
      }
    }
  }
}

TEST_F(CudaLayerNormTest, SmallVarianceBesideLargeMean) {
  const Tensor x = FromValues({10000, 10001, 10002, 10003}, {1, 4});
  ExpectSame(
      {x},
      [](const auto& in) -> absl::StatusOr<Tensor> {
        ASSIGN_OR_RETURN(const LayerNormResult result,
                         LayerNorm(in[0], 1, Tensor(), Tensor()));
        return result.y;
      },
      1e-4);
}

TEST_F(CudaLayerNormTest, Gradients) {
  for (const DType dtype : kFloatDTypes) {
    for (const Shape& shape : kShapes) {
      const int normalized_rank = shape.rank() > 2 ? 2 : 1;
      const Shape last =
          Shape(shape.span().last(static_cast<size_t>(normalized_rank)));
      const Tensor x = TestTensor(shape, dtype);
      const Tensor dy = TestTensor(shape, dtype, 2, -0.5, 0.5);
      for (const Tensor& weight : {Tensor(), TestTensor(last, dtype, 3)}) {
        const LayerNormResult forward =
            *LayerNorm(x, normalized_rank, weight, Tensor());
        for (Tensor LayerNormGradients::*const part :
             {&LayerNormGradients::x, &LayerNormGradients::weight,
              &LayerNormGradients::bias}) {
          SCOPED_TRACE(testing::Message() << x.ToString());
          ExpectSame(
              {dy, x, forward.mean, forward.rstd, weight},
              [&](const auto& in) -> absl::StatusOr<Tensor> {
                ASSIGN_OR_RETURN(const LayerNormGradients gradients,
                                 LayerNormGrad(in[0], in[1], normalized_rank,
                                               in[2], in[3], in[4]));
                return gradients.*part;
              },
              32 * Tolerance(dtype));
        }
      }
    }
  }
}

}  // namespace
}  // namespace hawser::tensor::cuda
