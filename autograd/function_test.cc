#include "autograd/function.h"

#include <memory>
#include <utility>
#include <vector>

#include "async/status_macros.h"
#include "async/testing/status_matchers.h"
#include "autograd/backward.h"
#include "autograd/grad_mode.h"
#include "autograd/gradcheck.h"
#include "autograd/variable.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensor/ops/elementwise.h"

namespace hawser::autograd {
namespace {

using async::IsOk;
using async::StatusIs;
using tensor::DType;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr auto kFailedPrecondition = absl::StatusCode::kFailedPrecondition;
constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

// (a, b) -> (scale a b, a + b).
class ProductAndSum final : public Function {
 public:
  explicit ProductAndSum(double scale) : scale_(scale) {}

  std::string_view name() const override { return "ProductAndSum"; }

  absl::StatusOr<std::vector<Tensor>> Forward(
      FunctionContext& context, std::span<const Tensor> inputs) override {
    EXPECT_FALSE(GradEnabled());
    ASSIGN_OR_RETURN(Tensor product, tensor::Mul(inputs[0], inputs[1]));
    ASSIGN_OR_RETURN(Tensor scaled, tensor::MulScalar(product, scale_));
    ASSIGN_OR_RETURN(Tensor sum, tensor::Add(inputs[0], inputs[1]));
    context.SaveForBackward({inputs[0], inputs[1]});
    return std::vector<Tensor>{std::move(scaled), std::move(sum)};
  }

  absl::StatusOr<std::vector<Tensor>> Backward(
      const FunctionContext& context,
      std::vector<Tensor> output_gradients) override {
    ASSIGN_OR_RETURN(std::vector<Tensor> saved, context.saved_tensors());
    std::vector<Tensor> gradients(2);
    for (int i = 0; i < 2; ++i) {
      if (!context.needs_input_gradient(i)) continue;
      ASSIGN_OR_RETURN(Tensor slope, tensor::MulScalar(saved[1 - i], scale_));
      ASSIGN_OR_RETURN(Tensor product, tensor::Mul(output_gradients[0], slope));
      ASSIGN_OR_RETURN(gradients[i], tensor::Add(product, output_gradients[1]));
    }
    return gradients;
  }

 private:
  const double scale_;
};

// A function of one input and one output with steps given by a test.
class Given final : public Function {
 public:
  using ForwardStep =
      std::function<std::vector<Tensor>(FunctionContext&, const Tensor&)>;
  using BackwardStep = std::function<absl::StatusOr<std::vector<Tensor>>(
      const FunctionContext&, const Tensor&)>;
  Given(ForwardStep forward, BackwardStep backward)
      : forward_(std::move(forward)), backward_(std::move(backward)) {}

  std::string_view name() const override { return "Given"; }
  absl::StatusOr<std::vector<Tensor>> Forward(
      FunctionContext& context, std::span<const Tensor> inputs) override {
    return forward_(context, inputs[0]);
  }
  absl::StatusOr<std::vector<Tensor>> Backward(
      const FunctionContext& context,
      std::vector<Tensor> output_gradients) override {
    return backward_(context, output_gradients[0]);
  }

 private:
  ForwardStep forward_;
  BackwardStep backward_;
};

TEST(FunctionTest, GradientsMatchFiniteDifferences) {
  for (const size_t output : {0, 1}) {
    EXPECT_THAT(
        CheckGradients(
            [&](std::span<const Tensor> inputs) -> absl::StatusOr<Tensor> {
              auto outputs = Apply(std::make_unique<ProductAndSum>(3),
                                   {inputs[0], inputs[1]});
              if (!outputs.ok()) return outputs.status();
              return (*outputs)[output];
            },
            {RandomVariable({2, 3}, {.seed = 1}),
             RandomVariable({2, 3}, {.seed = 2})}),
        IsOk());
  }
}

TEST(FunctionTest, UnusedOutputsHaveGradientZero) {
  const Tensor a = Variable({2}, {1});
  const Tensor b = Variable({5}, {1});
  auto outputs = Apply(std::make_unique<ProductAndSum>(3), {a, b});
  ASSERT_THAT(outputs, IsOk());
  const auto gradients = GradientsOf((*outputs)[1], {10}, {a, b});
  ASSERT_THAT(gradients, IsOk());
  EXPECT_THAT((*gradients)[0], ElementsAre(10));
  EXPECT_THAT((*gradients)[1], ElementsAre(10));
}

TEST(FunctionTest, DoesNotRecordUnderNoGradOrFromConstants) {
  const Tensor a = Variable({2}, {1});
  auto outputs =
      Apply(std::make_unique<ProductAndSum>(3), {Detach(a), Detach(a)});
  ASSERT_THAT(outputs, IsOk());
  EXPECT_FALSE(RequiresGrad((*outputs)[0]));
  NoGradGuard no_grad;
  outputs = Apply(std::make_unique<ProductAndSum>(3), {a, a});
  ASSERT_THAT(outputs, IsOk());
  EXPECT_FALSE(RequiresGrad((*outputs)[0]));
}

TEST(FunctionTest, SavedTensorsAreReleasedAndChecked) {
  const Tensor a = Variable({2}, {});
  const Tensor b = Variable({5}, {});
  auto outputs = Apply(std::make_unique<ProductAndSum>(3), {a, b});
  ASSERT_THAT(Backward((*outputs)[0]), IsOk());
  EXPECT_THAT(Backward((*outputs)[0]),
              StatusIs(kFailedPrecondition, HasSubstr("ProductAndSum")));
  outputs = Apply(std::make_unique<ProductAndSum>(3), {a, b});
  b.BumpVersion();
  EXPECT_THAT(Backward((*outputs)[0]),
              StatusIs(kFailedPrecondition, HasSubstr("ProductAndSum")));
}

TEST(FunctionTest, SavedOutputDoesNotKeepItsOwnNode) {
  const Tensor x = Variable({2}, {});
  std::weak_ptr<Node> node;
  {
    auto outputs = Apply(
        std::make_unique<Given>(
            [](FunctionContext& context, const Tensor& input) {
              const Tensor out = *tensor::Exp(input);
              context.SaveForBackward({out});
              return std::vector<Tensor>{out};
            },
            [](const FunctionContext& context,
               const Tensor& dout) -> absl::StatusOr<std::vector<Tensor>> {
              ASSIGN_OR_RETURN(auto saved, context.saved_tensors());
              ASSIGN_OR_RETURN(Tensor dx, tensor::Mul(saved[0], dout));
              return std::vector<Tensor>{dx};
            }),
        {x});
    ASSERT_THAT(outputs, IsOk());
    node = GradEdge((*outputs)[0]).node;
    EXPECT_FALSE(node.expired());
    EXPECT_THAT(Backward((*outputs)[0], {.retain_graph = true}), IsOk());
  }
  EXPECT_TRUE(node.expired());
}

TEST(FunctionTest, ReturnedInputBecomesANewTensor) {
  const Tensor x = Variable({2}, {});
  auto outputs =
      Apply(std::make_unique<Given>(
                [](FunctionContext&, const Tensor& input) {
                  return std::vector<Tensor>{input};
                },
                [](const FunctionContext&,
                   const Tensor& dout) -> absl::StatusOr<std::vector<Tensor>> {
                  ASSIGN_OR_RETURN(Tensor twice, tensor::MulScalar(dout, 2));
                  return std::vector<Tensor>{twice};
                }),
            {x});
  ASSERT_THAT(outputs, IsOk());
  EXPECT_TRUE(IsLeaf(x));
  ASSERT_THAT(Backward((*outputs)[0]), IsOk());
  EXPECT_EQ(*Grad(x).item<double>(), 2);
}

TEST(FunctionTest, OutputsWithoutGradient) {
  const Tensor x = Variable({2}, {});
  auto outputs = Apply(
      std::make_unique<Given>(
          [](FunctionContext& context, const Tensor& input) {
            context.MarkNonDifferentiable(1);
            return std::vector<Tensor>{*tensor::Neg(input), *tensor::Neg(input),
                                       *input.To(DType::kI64)};
          },
          [](const FunctionContext&,
             const Tensor& dout) -> absl::StatusOr<std::vector<Tensor>> {
            return std::vector<Tensor>{dout};
          }),
      {x});
  ASSERT_THAT(outputs, IsOk());
  EXPECT_TRUE(RequiresGrad((*outputs)[0]));
  EXPECT_FALSE(RequiresGrad((*outputs)[1]));
  EXPECT_FALSE(RequiresGrad((*outputs)[2]));
}

TEST(FunctionTest, WrongGradientsFailAndNameTheFunction) {
  const Tensor x = Variable({2}, {});
  const auto backward_of = [&](std::vector<Tensor> gradients) {
    auto outputs = Apply(
        std::make_unique<Given>(
            [](FunctionContext&, const Tensor& input) {
              return std::vector<Tensor>{*tensor::Neg(input)};
            },
            [gradients](const FunctionContext&, const Tensor&)
                -> absl::StatusOr<std::vector<Tensor>> { return gradients; }),
        {x});
    return Backward((*outputs)[0]);
  };
  const Tensor good = Tensor::Ones({}, {DType::kF64});
  EXPECT_THAT(backward_of({good}), IsOk());
  EXPECT_THAT(backward_of({Tensor()}), IsOk());
  EXPECT_THAT(backward_of({}), StatusIs(kInvalidArgument, HasSubstr("Given")));
  EXPECT_THAT(backward_of({good, good}), StatusIs(kInvalidArgument));
  EXPECT_THAT(backward_of({Tensor::Ones({2}, {DType::kF64})}),
              StatusIs(kInvalidArgument));
  EXPECT_THAT(backward_of({Tensor::Ones({})}), StatusIs(kInvalidArgument));
}

TEST(FunctionTest, ErrorOfTheForwardStepIsReturned) {
  const Tensor a = Variable({1, 2}, {2});
  const Tensor b = Variable({1, 2, 3}, {3});
  EXPECT_THAT(Apply(std::make_unique<ProductAndSum>(3), {a, b}),
              StatusIs(kInvalidArgument));
}

}  // namespace
}  // namespace hawser::autograd
