#include "dist_optim/owner_optimizer.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "async/executor.h"
#include "async/testing/manual_executor.h"
#include "async/testing/status_matchers.h"
#include "autograd/variable.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "optim/sgd.h"
#include "optim/sparse_adam.h"
#include "rpc/functions/erased_value.h"
#include "tensor/tensor.h"

namespace hawser::dist_optim {
namespace {

using async::IsOk;
using async::IsOkAndHolds;
using async::StatusIs;

// Gradients of more elements are applied on the executor.
constexpr int64_t kMaxElementsHere = 512 * 1024;

OwnedParameter Parameter(double value, int64_t num_elements = 2) {
  Tensor tensor = Tensor::Full({num_elements}, value);
  EXPECT_THAT(autograd::SetRequiresGrad(tensor), IsOk());
  return {tensor, std::make_shared<rref::OwnerValue>(rpc::Erase(tensor))};
}

class OwnerOptimizerTest : public testing::Test {
 protected:
  void Make(const optim::SgdOptions& options) {
    auto optimizer = OwnerOptimizer::Create({{optim::Sgd(options), {a_, b_}}});
    ASSERT_THAT(optimizer, IsOk());
    optimizer_ = *std::move(optimizer);
  }

  // Steps with a gradient of ones for `a_` and none for the others.
  async::Future<uint64_t> Step(uint64_t number) {
    return optimizer_->Step(
        number,
        [this](const Tensor& parameter) {
          return parameter.is_same(a_.tensor) ? Tensor::Ones({2}) : Tensor();
        },
        executor_);
  }

  float A() const { return a_.tensor.data<float>()[0]; }

  async::InlineExecutor executor_;
  OwnedParameter a_ = Parameter(1);
  OwnedParameter b_ = Parameter(2);
  std::shared_ptr<OwnerOptimizer> optimizer_;
};

TEST_F(OwnerOptimizerTest, ParameterWithoutGradientDoesNotChange) {
  Make({.lr = 0.25});
  EXPECT_THAT(Step(1).Wait(), IsOkAndHolds(1u));
  EXPECT_FLOAT_EQ(A(), 0.75);
  EXPECT_FLOAT_EQ(b_.tensor.data<float>()[0], 2);
}

TEST_F(OwnerOptimizerTest, RepeatedStepIsNotAppliedAgain) {
  Make({.lr = 0.25});
  EXPECT_THAT(Step(1).Wait(), IsOkAndHolds(1u));
  EXPECT_THAT(Step(1).Wait(), IsOkAndHolds(1u));
  EXPECT_FLOAT_EQ(A(), 0.75);
  for (uint64_t i = 2; i < 2 + OwnerOptimizer::kMaxSteps; ++i) {
    EXPECT_THAT(Step(i).Wait(), IsOk());
  }
  EXPECT_THAT(Step(1).Wait(), StatusIs(absl::StatusCode::kAborted));
}

TEST_F(OwnerOptimizerTest, StepWaitsForAFetchInProgress) {
  Make({.lr = 0.25});
  rref::AsyncSharedMutex::Holder reader =
      *a_.value->lock().AcquireShared().Wait();
  async::Future<uint64_t> step = Step(1);
  EXPECT_FALSE(step.ready());
  EXPECT_FLOAT_EQ(A(), 1);
  reader.reset();
  EXPECT_TRUE(step.ready());
  EXPECT_FLOAT_EQ(A(), 0.75);
}

TEST_F(OwnerOptimizerTest, FetchWaitsForAStepInProgress) {
  a_ = Parameter(1, kMaxElementsHere + 1);
  Make({.lr = 0.25});
  async::ManualExecutor later;
  async::Future<uint64_t> step = optimizer_->Step(
      1,
      [](const Tensor& parameter) { return Tensor::Ones(parameter.shape()); },
      later);
  EXPECT_FALSE(a_.value->lock().AcquireShared().ready());
  later.RunAll();
  EXPECT_TRUE(step.ready());
  EXPECT_TRUE(a_.value->lock().AcquireShared().ready());
}

// All gradients of a step count together.
TEST_F(OwnerOptimizerTest, SmallStepIsAppliedWithoutTheExecutor) {
  a_ = Parameter(1, kMaxElementsHere / 2);
  b_ = Parameter(1, kMaxElementsHere / 2);
  Make({.lr = 0.25});
  const auto ones = [](const Tensor& parameter) {
    return Tensor::Ones(parameter.shape());
  };
  async::ManualExecutor later;
  EXPECT_TRUE(optimizer_->Step(1, ones, later).ready());
  EXPECT_FLOAT_EQ(A(), 0.75);
  // The thread that ends the fetch has other work.
  rref::AsyncSharedMutex::Holder reader =
      *a_.value->lock().AcquireShared().Wait();
  async::Future<uint64_t> step = optimizer_->Step(2, ones, later);
  reader.reset();
  EXPECT_FALSE(step.ready());
  later.RunAll();
  EXPECT_TRUE(step.ready());
  EXPECT_FLOAT_EQ(A(), 0.5);
}

TEST_F(OwnerOptimizerTest, OptionAppliesFromTheNextStep) {
  Make({.lr = 0.25});
  EXPECT_THAT(optimizer_->SetOption(0, "lr", 0.5), IsOk());
  EXPECT_THAT(Step(1).Wait(), IsOk());
  EXPECT_FLOAT_EQ(A(), 0.5);
  EXPECT_THAT(optimizer_->SetOption(1, "lr", 0.5),
              StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_THAT(optimizer_->SetOption(0, "no", 0.5),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(optimizer_->SetOption(0, "lr", -1),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Step(2).Wait(), IsOk());
  EXPECT_FLOAT_EQ(A(), 0);
}

TEST_F(OwnerOptimizerTest, StateContinuesInAnotherOptimizer) {
  Make({.lr = 0.25, .momentum = 0.5});
  EXPECT_THAT(Step(1).Wait(), IsOk());
  auto state = optimizer_->GetState().Wait();
  ASSERT_THAT(state, IsOk());
  ASSERT_EQ(state->size(), 1u);
  EXPECT_EQ((*state)[0].parameters[0].step, 1);
  EXPECT_EQ((*state)[0].parameters[1].step, 0);
  const float after_one = A();
  EXPECT_THAT(Step(2).Wait(), IsOk());
  const float after_two = A();

  a_ = Parameter(after_one);
  Make({.lr = 0.1, .momentum = 0.9});
  EXPECT_THAT(optimizer_->SetState(*state).Wait(), IsOk());
  EXPECT_THAT(Step(1).Wait(), IsOk());
  EXPECT_FLOAT_EQ(A(), after_two);
}

TEST_F(OwnerOptimizerTest, StateThatDoesNotFitChangesNothing) {
  Make({.lr = 0.25, .momentum = 0.5});
  EXPECT_THAT(Step(1).Wait(), IsOk());
  const auto state = *optimizer_->GetState().Wait();
  const auto refuse = [&](std::vector<GroupState> wrong) {
    EXPECT_THAT(optimizer_->SetState(std::move(wrong)).Wait(),
                StatusIs(absl::StatusCode::kInvalidArgument));
  };
  refuse({});
  auto fewer = state;
  fewer[0].parameters.pop_back();
  refuse(fewer);
  auto shape = state;
  shape[0].parameters[0].slots[0].second = Tensor::Zeros({3});
  refuse(shape);
  auto name = state;
  name[0].parameters[0].slots[0].first = "other";
  refuse(name);
  auto step = state;
  step[0].parameters[0].step = std::numeric_limits<int64_t>::max();
  refuse(step);
  auto rule = state;
  rule[0].rule.name = "NoSuchRule";
  refuse(rule);
  EXPECT_EQ((*optimizer_->GetState().Wait())[0].parameters[0].step, 1);
}

// Steps do not have gradients of rows.
TEST_F(OwnerOptimizerTest, RuleThatTakesOnlyRowsIsRefusedAtCreation) {
  const optim::RuleSpec sparse = optim::SparseAdam({});
  const auto refused = StatusIs(absl::StatusCode::kInvalidArgument,
                                testing::HasSubstr("SparseAdam"));
  EXPECT_THAT(OwnerOptimizer::Create({{sparse, {a_}}}), refused);
  Make({.lr = 0.25});
  auto state = *optimizer_->GetState().Wait();
  state[0].rule = sparse;
  EXPECT_THAT(optimizer_->SetState(state).Wait(), refused);
  EXPECT_THAT(Step(1).Wait(), IsOkAndHolds(1u));
}

TEST_F(OwnerOptimizerTest, ErrorsNameWrongParameters) {
  EXPECT_THAT(OwnerOptimizer::Create({{optim::Sgd({.lr = 1}), {a_, a_}}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::HasSubstr("parameter 1 of group 0")));
  const Tensor plain = Tensor::Zeros({2});
  EXPECT_THAT(
      OwnerOptimizer::Create(
          {{optim::Sgd({.lr = 1}),
            {{plain, std::make_shared<rref::OwnerValue>(rpc::Erase(plain))}}}}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               testing::HasSubstr("requires a gradient")));
  EXPECT_THAT(OwnerOptimizer::Create({{optim::RuleSpec{"No", {}}, {a_}}}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace hawser::dist_optim
