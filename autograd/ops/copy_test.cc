#include "autograd/ops/copy.h"

#include "async/testing/status_matchers.h"
#include "autograd/gradcheck.h"
#include "autograd/ops/view.h"
#include "autograd/variable.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensor/device.h"

namespace hawser::autograd {
namespace {

using async::IsOk;
using async::StatusIs;

TEST(CopyTest, GradientsMatchFiniteDifferences) {
  const TensorFunction copies[] = {
      [](std::span<const Tensor> inputs) { return Clone(inputs[0]); },
      [](std::span<const Tensor> inputs) -> absl::StatusOr<Tensor> {
        const auto turned = Transpose(inputs[0], 0, 1);
        return Contiguous(*turned);
      },
      [](std::span<const Tensor> inputs) -> absl::StatusOr<Tensor> {
        const auto copy = Clone(inputs[0]);
        return ToDevice(*copy, tensor::kCpu);
      },
  };
  for (const TensorFunction& copy : copies) {
    EXPECT_THAT(CheckGradients(copy, {RandomVariable({2, 3})}), IsOk());
  }
}

TEST(CopyTest, CopiesOnlyIfNecessary) {
  const Tensor x = RandomVariable({2, 3});
  const auto clone = Clone(x);
  ASSERT_THAT(clone, IsOk());
  EXPECT_NE(clone->raw_data(), x.raw_data());
  EXPECT_TRUE(RequiresGrad(*clone));
  EXPECT_TRUE(Contiguous(x)->is_same(x));
  EXPECT_TRUE(ToDevice(x, tensor::kCpu)->is_same(x));
  EXPECT_TRUE((*Contiguous(*Transpose(x, 0, 1))).is_contiguous());
}

TEST(CopyTest, ReturnsErrorsOfTheMethods) {
  const auto invalid = StatusIs(absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Clone(Tensor()), invalid);
  EXPECT_THAT(Contiguous(Tensor()), invalid);
  EXPECT_THAT(ToDevice(Tensor(), tensor::kCpu), invalid);
}

}  // namespace
}  // namespace hawser::autograd
