#include "autograd/ops/cast.h"

#include <vector>

#include "async/testing/status_matchers.h"
#include "autograd/backward.h"
#include "autograd/gradcheck.h"
#include "autograd/variable.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::autograd {
namespace {

using async::IsOk;
using tensor::DType;
using testing::ElementsAre;

TEST(CastTest, GradientHasTheDtypeOfTheInput) {
  const Tensor x = Variable({1, 2}, {2});
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    const auto y = Cast(x, dtype);
    ASSERT_THAT(y, IsOk());
    EXPECT_EQ(y->dtype(), dtype);
    const Tensor dout = *Tensor::FromVector<float>({3, 4}, {2}).To(dtype);
    ZeroGrad(x);
    ASSERT_THAT(Backward({&*y, 1}, {&dout, 1}), IsOk());
    EXPECT_THAT(Grad(x).ToVector<double>(), ElementsAre(3, 4));
  }
}

TEST(CastTest, SameDtypeReturnsTheTensorItself) {
  const Tensor x = Variable({1, 2}, {2});
  EXPECT_TRUE(Cast(x, DType::kF64)->is_same(x));
}

TEST(CastTest, IntegerDtypeEndsTheGraph) {
  const Tensor x = Variable({1, 2}, {2});
  EXPECT_FALSE(RequiresGrad(*Cast(x, DType::kI64)));
}

}  // namespace
}  // namespace hawser::autograd
