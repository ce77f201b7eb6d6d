#include <cstdint>
#include <limits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/status_macros.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensor/backend/cuda/testing/parity.h"
#include "tensor/backend/kernel_types.h"
#include "tensor/device.h"
#include "tensor/dtype.h"
#include "tensor/ops/embedding.h"
#include "tensor/ops/test_tensors.h"
#include "tensor/tensor.h"

namespace hawser::tensor::cuda {
namespace {

using async::StatusIs;
using testing::HasSubstr;

using CudaEmbeddingBagTest = CudaTest;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr BagMode kModes[] = {BagMode::kSum, BagMode::kMean, BagMode::kMax};

Tensor Ids(const std::vector<int64_t>& ids, DType dtype = DType::kI64) {
  return *Tensor::FromVector(ids, {static_cast<int64_t>(ids.size())}).To(dtype);
}

void ExpectSameBags(const Tensor& weight, const Tensor& ids,
                    const Tensor& offsets) {
  for (const BagMode mode : kModes) {
    for (Tensor EmbeddingBagResult::*const part :
         {&EmbeddingBagResult::out, &EmbeddingBagResult::max_ids}) {
      if (part == &EmbeddingBagResult::max_ids && mode != BagMode::kMax) {
        continue;
      }
      ExpectSame(
          {weight, ids, offsets},
          [&](const auto& in) -> absl::StatusOr<Tensor> {
            ASSIGN_OR_RETURN(const EmbeddingBagResult result,
                             EmbeddingBag(in[0], in[1], in[2], mode));
            return result.*part;
          },
          IsFloatingPoint(weight.dtype()) ? 4 * Tolerance(weight.dtype()) : 0);
    }
    const EmbeddingBagResult forward =
        *EmbeddingBag(weight, ids, offsets, mode);
    const Tensor dout =
        TestTensor(forward.out.shape(), weight.dtype(), 2, -1, 1);
    ExpectSame(
        {dout, ids, offsets, forward.max_ids},
        [&](const auto& in) {
          return EmbeddingBagGrad(in[0], in[1], in[2], in[3], mode,
                                  weight.dim(0));
        },
        8 * Tolerance(weight.dtype()));
  }
}

TEST_F(CudaEmbeddingBagTest, BagsAndTheirGradients) {
  for (const DType dtype : kFloatDTypes) {
    const Tensor weight = TestTensor({6, 5}, dtype);
    for (const DType id_dtype : {DType::kI64, DType::kI32}) {
      ExpectSameBags(weight, Ids({1, 4, 4, 0, 5, 2}, id_dtype),
                     Ids({0, 2, 2, 5}, id_dtype));
      ExpectSameBags(weight, Ids({3}, id_dtype), Ids({0}, id_dtype));
      ExpectSameBags(weight, Ids({}, id_dtype), Ids({0, 0}, id_dtype));
      ExpectSameBags(weight, Ids({}, id_dtype), Ids({}, id_dtype));
    }
  }
  ExpectSameBags(FromValues({1, kNaN, kNaN, 2, 3, 4}, {3, 2}), Ids({0, 1, 2}),
                 Ids({0}));
}

TEST_F(CudaEmbeddingBagTest, BadIdsAndOffsetsAreNamed) {
  const Tensor weight = TestTensor({6, 5});
  const auto expect_same = [&](const Tensor& ids, const Tensor& offsets) {
    ExpectSame(
        {weight, ids, offsets}, [](const auto& in) -> absl::StatusOr<Tensor> {
          return EmbeddingBag(in[0], in[1], in[2], BagMode::kSum).status();
        });
  };
  expect_same(Ids({0, 6}), Ids({0}));
  expect_same(Ids({-1, 6}), Ids({0}));
  expect_same(Ids({0, 1}), Ids({0, 3}));
  expect_same(Ids({0, 1}), Ids({-1, 1}));
  expect_same(Ids({0, 1, 2}), Ids({0, 2, 1}));
  for (const Device device : {kCpu, Cuda()}) {
    EXPECT_THAT(EmbeddingBag(*weight.To(device), *Ids({0, 1}).To(device),
                             *Ids({1}).To(device), BagMode::kSum),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("the first of the offsets must be 0")));
  }
}

TEST_F(CudaEmbeddingBagTest, BadWinnerIsNamed) {
  const Tensor dout = Tensor::Ones({1, 2});
  for (const int64_t bad : {-2, 3}) {
    const Tensor max_ids = Tensor::FromVector<int64_t>({-1, bad}, {1, 2});
    ExpectSame({dout, Ids({0}), Ids({0}), max_ids}, [](const auto& in) {
      return EmbeddingBagGrad(in[0], in[1], in[2], in[3], BagMode::kMax, 3);
    });
  }
}

}  // namespace
}  // namespace hawser::tensor::cuda
