#include "optim/grad_clip.h"

#include <cmath>
#include <limits>
#include <vector>

#include "absl/status/status.h"
#include "async/testing/status_matchers.h"
#include "autograd/variable.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace hawser::optim {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::hawser::tensor::DType;
using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Tensor F64(const std::vector<double>& values) {
  return Tensor::FromVector(values, {static_cast<int64_t>(values.size())});
}

TEST(GradClipTest, NormIsOverAllGradientsTogether) {
  const std::vector<Tensor> gradients = {F64({3, 0}), Tensor(), F64({-4})};
  EXPECT_THAT(ClipNorm(gradients, {.max_norm = 1}),
              IsOkAndHolds(DoubleNear(5, 1e-12)));
  const double factor = 1 / (5 + 1e-6);
  EXPECT_THAT(gradients[0].ToVector<double>(),
              ElementsAre(DoubleNear(3 * factor, 1e-15), 0));
  EXPECT_THAT(gradients[2].ToVector<double>(),
              ElementsAre(DoubleNear(-4 * factor, 1e-15)));
}

TEST(GradClipTest, OtherNorms) {
  const std::vector<Tensor> gradients = {F64({3, -1}), F64({-4})};
  EXPECT_THAT(ClipNorm(gradients, {.max_norm = 100, .p = 1}),
              IsOkAndHolds(DoubleNear(8, 1e-12)));
  EXPECT_THAT(ClipNorm(gradients, {.max_norm = 100, .p = 3}),
              IsOkAndHolds(DoubleNear(std::cbrt(27 + 1 + 64), 1e-12)));
  EXPECT_THAT(ClipNorm(gradients, {.max_norm = 2, .p = kInfinity}),
              IsOkAndHolds(DoubleNear(4, 1e-12)));
  EXPECT_NEAR(gradients[1].ToVector<double>()[0], -2, 1e-5);
}

TEST(GradClipTest, NormsOf16BitGradientsAreComputedInF32) {
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    // The norm exceeds the range of f16.
    const std::vector<Tensor> large = {Tensor::Full({4}, 40960, {dtype})};
    EXPECT_THAT(ClipNorm(large, {.max_norm = 1}),
                IsOkAndHolds(DoubleNear(81920, 0.01)));
    EXPECT_THAT(large[0].To(DType::kF64)->ToVector<double>(),
                Each(DoubleNear(0.5, 1e-3)));
    // The norm is between two representable numbers of either dtype.
    EXPECT_THAT(ClipNorm(std::vector<Tensor>{Tensor::Ones({3}, {dtype})},
                         {.max_norm = 100}),
                IsOkAndHolds(DoubleNear(std::sqrt(3.0), 1e-6)));
  }
}

TEST(GradClipTest, SmallGradientsAreUnchanged) {
  const std::vector<Tensor> gradients = {F64({0.3, 0.4})};
  const uint64_t version = gradients[0].version();
  EXPECT_THAT(ClipNorm(gradients, {.max_norm = 1}),
              IsOkAndHolds(DoubleNear(0.5, 1e-12)));
  EXPECT_EQ(gradients[0].version(), version);
}

TEST(GradClipTest, EmptyListHasNormZero) {
  EXPECT_THAT(ClipNorm({}, {}), IsOkAndHolds(0));
  EXPECT_THAT(ClipNorm(std::vector<Tensor>{Tensor()}, {}), IsOkAndHolds(0));
}

TEST(GradClipTest, NonFiniteNormIsReportedAndChangesNothing) {
  for (const double bad : {kInfinity, -kInfinity, std::nan("")}) {
    for (const double p : {2.0, 1.0, kInfinity}) {
      const std::vector<Tensor> gradients = {F64({30}), F64({1, bad}),
                                             F64({40})};
      EXPECT_THAT(ClipNorm(gradients, {.p = p}),
                  StatusIs(absl::StatusCode::kFailedPrecondition,
                           HasSubstr("gradient 1")));
      EXPECT_THAT(gradients[0].ToVector<double>(), ElementsAre(30));
    }
  }
}

TEST(GradClipTest, NonFiniteNormCanBeAccepted) {
  const std::vector<Tensor> gradients = {F64({3}), F64({kInfinity})};
  EXPECT_THAT(ClipNorm(gradients, {.fail_if_nonfinite = false}),
              IsOkAndHolds(kInfinity));
  EXPECT_THAT(gradients[0].ToVector<double>(), ElementsAre(0));
  EXPECT_TRUE(std::isnan(gradients[1].ToVector<double>()[0]));
}

TEST(GradClipTest, ValuesAreClampedToTheInterval) {
  const std::vector<Tensor> gradients = {
      F64({-3, -0.5, 0, 0.5, 3, kInfinity, std::nan("")}), Tensor()};
  ASSERT_THAT(ClipValue(gradients, 1), IsOk());
  const std::vector<double> clipped = gradients[0].ToVector<double>();
  EXPECT_THAT(std::vector<double>(clipped.begin(), clipped.begin() + 6),
              ElementsAre(-1, -0.5, 0, 0.5, 1, 1));
  EXPECT_TRUE(std::isnan(clipped[6]));
}

TEST(GradClipTest, OptionsOutOfRangeAreRejected) {
  const std::vector<Tensor> gradients = {F64({3})};
  const auto refused = StatusIs(absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(ClipNorm(gradients, {.max_norm = -1}), refused);
  EXPECT_THAT(ClipNorm(gradients, {.max_norm = std::nan("")}), refused);
  EXPECT_THAT(ClipNorm(gradients, {.p = 0}), refused);
  EXPECT_THAT(ClipValue(gradients, -1), refused);
  EXPECT_THAT(ClipValue(gradients, std::nan("")), refused);
}

TEST(GradClipTest, GradientsAreThoseOfTheParameters) {
  const Tensor a = Tensor::Ones({1});
  const Tensor b = Tensor::Ones({1});
  ASSERT_THAT(autograd::SetRequiresGrad(a), IsOk());
  ASSERT_THAT(autograd::SetRequiresGrad(b), IsOk());
  ASSERT_THAT(autograd::SetGrad(b, Tensor::Full({1}, 10)), IsOk());
  const std::vector<Tensor> gradients = Gradients(std::vector<Tensor>{a, b});
  ASSERT_EQ(gradients.size(), 2);
  EXPECT_FALSE(gradients[0].defined());
  ASSERT_THAT(ClipValue(gradients, 2), IsOk());
  EXPECT_THAT(autograd::Grad(b).ToVector<float>(), ElementsAre(2));
}

}  // namespace
}  // namespace hawser::optim
