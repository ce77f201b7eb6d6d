#include "autograd/ops/dropout.h"

#include <vector>

#include "async/testing/status_matchers.h"
#include "autograd/gradcheck.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::autograd {
namespace {

using async::IsOk;
using async::StatusIs;
using testing::Each;

TEST(DropoutTest, GradientMatchesFiniteDifferences) {
  EXPECT_THAT(CheckGradients(
                  [](std::span<const Tensor> inputs) {
                    tensor::Generator generator(3);
                    return Dropout(inputs[0], 0.4, generator);
                  },
                  {RandomVariable({4, 5})}),
              IsOk());
}

TEST(DropoutTest, GradientIsTheMaskOfTheOutput) {
  tensor::Generator generator(3);
  const std::vector<double> ones(1000, 1.0);
  const Tensor x = Variable(ones, {1000});
  const auto y = Dropout(x, 0.25, generator);
  ASSERT_THAT(y, IsOk());
  const auto gradients = GradientsOf(*y, ones, {x});
  ASSERT_THAT(gradients, IsOk());
  EXPECT_EQ((*gradients)[0], y->ToVector<double>());
  int num_kept = 0;
  for (double value : (*gradients)[0]) {
    EXPECT_TRUE(value == 0 || value == 1 / 0.75) << value;
    num_kept += value != 0;
  }
  // Within five standard deviations of the mean of a binomial.
  EXPECT_NEAR(num_kept, 750, 70);
}

TEST(DropoutTest, ProbabilitiesZeroAndOne) {
  tensor::Generator generator(3);
  const Tensor x = Variable({2, 2, 2}, {3});
  EXPECT_THAT(Dropout(x, 0, generator)->ToVector<double>(), Each(2));
  EXPECT_THAT(Dropout(x, 1, generator)->ToVector<double>(), Each(0));
}

TEST(DropoutTest, RejectsInvalidProbability) {
  tensor::Generator generator(3);
  const Tensor x = Variable({1}, {1});
  for (const double probability : {-0.1, 1.1, 0.0 / 0.0}) {
    EXPECT_THAT(Dropout(x, probability, generator),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
  EXPECT_THAT(Dropout(Tensor::Arange(3, {tensor::DType::kI64}), 0.5, generator),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace hawser::autograd
