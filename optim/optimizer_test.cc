#include "optim/optimizer.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "async/testing/status_matchers.h"
#include "autograd/backward.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/variable.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "optim/adam.h"
#include "optim/sgd.h"
#include "tensor/tensor.h"

namespace hawser::optim {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor Parameter(const std::vector<float>& values) {
  Tensor t = Tensor::FromVector(values, {static_cast<int64_t>(values.size())});
  EXPECT_THAT(autograd::SetRequiresGrad(t), IsOk());
  return t;
}

void SetGrad(const Tensor& t, const std::vector<float>& values) {
  EXPECT_THAT(autograd::SetGrad(t, Tensor::FromVector(values, t.shape())),
              IsOk());
}

TEST(OptimizerTest, TrainsFromABackwardPass) {
  const Tensor w = Parameter({3, -2});
  const auto optimizer = Optimizer::Create({w}, Sgd({.lr = 0.25}));
  ASSERT_THAT(optimizer, IsOk());
  for (int i = 0; i < 2; ++i) {
    (*optimizer)->ZeroGrad();
    const Tensor loss = *autograd::Sum(*autograd::Square(w));
    ASSERT_THAT(autograd::Backward(loss), IsOk());
    ASSERT_THAT((*optimizer)->Step(), IsOk());
  }
  EXPECT_THAT(w.ToVector<float>(), ElementsAre(0.75, -0.5));
}

TEST(OptimizerTest, ParameterWithoutGradientIsUnchanged) {
  const Tensor a = Parameter({1});
  const Tensor b = Parameter({1});
  const auto optimizer = Optimizer::Create({a, b}, Adam({.lr = 0.1}));
  ASSERT_THAT(optimizer, IsOk());
  SetGrad(a, {1});
  ASSERT_THAT((*optimizer)->Step(), IsOk());
  EXPECT_EQ((*optimizer)->state(0).step, 1);
  EXPECT_EQ((*optimizer)->state(1).step, 0);
  EXPECT_TRUE((*optimizer)->state(1).slots.empty());
  EXPECT_THAT(b.ToVector<float>(), ElementsAre(1));

  // A dropped gradient is not used again.
  (*optimizer)->ZeroGrad();
  SetGrad(b, {1});
  ASSERT_THAT((*optimizer)->Step(), IsOk());
  EXPECT_EQ((*optimizer)->state(0).step, 1);
  EXPECT_EQ((*optimizer)->state(1).step, 1);
}

TEST(OptimizerTest, ExplicitGradientsWorkWithoutAutograd) {
  const Tensor a = Tensor::Ones({1});
  const Tensor b = Tensor::Ones({1});
  const auto optimizer = Optimizer::Create({a, b}, Sgd({.lr = 1}));
  ASSERT_THAT(optimizer, IsOk());
  ASSERT_THAT((*optimizer)->Step(std::vector<Tensor>{Tensor(), b}), IsOk());
  EXPECT_THAT(a.ToVector<float>(), ElementsAre(1));
  EXPECT_THAT(b.ToVector<float>(), ElementsAre(0));
  EXPECT_THAT((*optimizer)->Step(std::vector<Tensor>{b}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("1 gradients for 2 parameters")));
}

TEST(OptimizerTest, ErrorNamesTheParameter) {
  const Tensor a = Tensor::Ones({1});
  const auto optimizer =
      Optimizer::Create({a, Tensor::Ones({2})}, Sgd({.lr = 1}));
  ASSERT_THAT(optimizer, IsOk());
  EXPECT_THAT((*optimizer)->Step(std::vector<Tensor>{a, a}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("parameter 1"), HasSubstr("f32[2]"))));
}

TEST(OptimizerTest, GroupsHaveTheirOwnOptions) {
  const Tensor a = Tensor::Zeros({1});
  const Tensor b = Tensor::Zeros({1});
  const auto optimizer = Optimizer::Create(
      {{.parameters = {a}}, {.parameters = {b}, .options = {{"lr", 3}}}},
      Sgd({.lr = 1}));
  ASSERT_THAT(optimizer, IsOk());
  const std::vector<Tensor> ones = {Tensor::Ones({1}), Tensor::Ones({1})};
  ASSERT_THAT((*optimizer)->Step(ones), IsOk());
  EXPECT_THAT(a.ToVector<float>(), ElementsAre(-1));
  EXPECT_THAT(b.ToVector<float>(), ElementsAre(-3));
  ASSERT_THAT((*optimizer)->SetOption(1, "lr", 5), IsOk());
  ASSERT_THAT((*optimizer)->Step(ones), IsOk());
  EXPECT_THAT(a.ToVector<float>(), ElementsAre(-2));
  EXPECT_THAT(b.ToVector<float>(), ElementsAre(-8));
  EXPECT_EQ((*optimizer)->learning_rate(0), 1);
  EXPECT_EQ((*optimizer)->learning_rate(1), 5);
}

TEST(OptimizerTest, CreateRejectsInvalidArguments) {
  const auto refused = [](auto parameters, const RuleSpec& rule,
                          const std::string& message) {
    EXPECT_THAT(
        Optimizer::Create(std::move(parameters), rule),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)));
  };
  const Tensor a = Parameter({1});
  const RuleSpec sgd = Sgd({.lr = 1});
  refused(std::vector<Tensor>{}, sgd, "empty");
  refused(std::vector<ParameterGroup>{}, sgd, "requires parameters");
  refused(std::vector<ParameterGroup>{{.parameters = {a}}, {}}, sgd,
          "group 1 is empty");
  refused(std::vector<Tensor>{a, Tensor()}, sgd, "parameter 1 is undefined");
  refused(std::vector<Tensor>{a, a}, sgd, "parameter 1, f32[1]");
  refused(std::vector<ParameterGroup>{{.parameters = {a}}, {.parameters = {a}}},
          sgd, "listed twice");
  refused(std::vector<Tensor>{*autograd::Square(a)}, sgd,
          "result of an operation");
  refused(std::vector<Tensor>{a}, Sgd({.lr = -1}), "lr");
  refused(std::vector<ParameterGroup>{{.parameters = {a},
                                       .options = {{"beta1", 0.5}}}},
          sgd, "beta1");
}

TEST(OptimizerTest, RejectedGroupIsNotAdded) {
  const Tensor a = Parameter({1});
  const Tensor b = Parameter({1});
  const auto optimizer = Optimizer::Create({a}, Sgd({.lr = 1}));
  ASSERT_THAT(optimizer, IsOk());
  EXPECT_THAT((*optimizer)->AddGroup({.parameters = {b, a}}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ((*optimizer)->num_groups(), 1);
  EXPECT_EQ((*optimizer)->parameters().size(), 1);
  EXPECT_THAT((*optimizer)->AddGroup({.parameters = {b}}), IsOk());
  EXPECT_EQ((*optimizer)->parameters().size(), 2);
}

TEST(OptimizerTest, RejectedOptionChangesNothing) {
  const auto optimizer =
      Optimizer::Create({{.parameters = {Parameter({1})}},
                         {.parameters = {Parameter({1})},
                          .options = {{"nesterov", 1}, {"momentum", 0.9}}}},
                        Sgd({.lr = 1}));
  ASSERT_THAT(optimizer, IsOk());
  // Group 1 requires momentum.
  EXPECT_THAT((*optimizer)->SetOption("momentum", 0),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT((*optimizer)->SetOption(2, "lr", 1),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("parameter group 2 does not exist")));
  EXPECT_THAT((*optimizer)->SetOption(0, "lr", -1),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ((*optimizer)->rule(1).Find("momentum"), 0.9);
  EXPECT_THAT((*optimizer)->SetOption("momentum", 0.5), IsOk());
  EXPECT_EQ((*optimizer)->rule(0).Find("momentum"), 0.5);
  EXPECT_EQ((*optimizer)->rule(1).Find("momentum"), 0.5);
}

}  // namespace
}  // namespace hawser::optim
