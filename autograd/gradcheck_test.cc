#include "autograd/gradcheck.h"

#include <memory>
#include <vector>

#include "async/testing/status_matchers.h"
#include "autograd/function.h"
#include "autograd/ops/elementwise.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensor/ops/elementwise.h"

namespace hawser::autograd {
namespace {

using async::IsOk;
using async::StatusIs;
using testing::ElementsAre;
using testing::HasSubstr;

// x^2 with a gradient that is wrong by a factor.
class WrongSquare final : public Function {
 public:
  explicit WrongSquare(double factor) : factor_(factor) {}
  std::string_view name() const override { return "WrongSquare"; }
  absl::StatusOr<std::vector<Tensor>> Forward(
      FunctionContext& context, std::span<const Tensor> inputs) override {
    context.SaveForBackward({inputs[0]});
    return std::vector<Tensor>{*tensor::Square(inputs[0])};
  }
  absl::StatusOr<std::vector<Tensor>> Backward(
      const FunctionContext& context,
      std::vector<Tensor> output_gradients) override {
    const Tensor x = (*context.saved_tensors())[0];
    return std::vector<Tensor>{
        *tensor::MulScalar(*tensor::Mul(x, output_gradients[0]), 2 * factor_)};
  }

 private:
  const double factor_;
};

absl::Status CheckFactor(double factor) {
  return CheckGradients(
      [factor](std::span<const Tensor> inputs) -> absl::StatusOr<Tensor> {
        auto outputs =
            autograd::Apply(std::make_unique<WrongSquare>(factor), {inputs[0]});
        if (!outputs.ok()) return outputs.status();
        return (*outputs)[0];
      },
      {RandomVariable({2, 2})});
}

TEST(GradcheckTest, FindsAWrongGradient) {
  EXPECT_THAT(CheckFactor(1), IsOk());
  EXPECT_THAT(CheckFactor(1.0001),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("element 0")));
  EXPECT_THAT(CheckFactor(-1), StatusIs(absl::StatusCode::kDataLoss));
}

TEST(GradcheckTest, ErrorOfTheFunctionIsReturned) {
  EXPECT_THAT(CheckGradients(
                  [](std::span<const Tensor>) -> absl::StatusOr<Tensor> {
                    return absl::AbortedError("no");
                  },
                  {RandomVariable({1})}),
              StatusIs(absl::StatusCode::kAborted));
}

TEST(GradcheckTest, RandomVariablesDependOnlyOnTheSeed) {
  const RandomRange range = {.low = 2, .high = 3, .seed = 5};
  const auto values = RandomVariable({4}, range).ToVector<double>();
  EXPECT_EQ(values, RandomVariable({4}, range).ToVector<double>());
  EXPECT_NE(values, RandomVariable({4}).ToVector<double>());
  for (double value : values) {
    EXPECT_GE(value, 2);
    EXPECT_LT(value, 3);
  }
}

TEST(GradcheckTest, GradientsOfReturnsZerosForUnusedInputs) {
  const Tensor x = Variable({3}, {1});
  const Tensor unused = Variable({3, 4}, {2});
  const auto gradients = GradientsOf(*autograd::Square(x), {1}, {x, unused});
  ASSERT_THAT(gradients, IsOk());
  EXPECT_THAT((*gradients)[0], ElementsAre(6));
  EXPECT_THAT((*gradients)[1], ElementsAre(0, 0));
}

}  // namespace
}  // namespace hawser::autograd
