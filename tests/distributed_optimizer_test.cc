// Tests of distributed optimizers between real agents.

#include "dist_optim/distributed_optimizer.h"

#include <algorithm>
#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "async/future.h"
#include "async/status_macros.h"
#include "async/testing/status_matchers.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/variable.h"
#include "dist_autograd/dist_autograd.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "optim/sgd.h"
#include "optim/sparse_adam.h"
#include "rpc/functions/function.h"
#include "rpc/testing/transport_test_param.h"
#include "rref/method.h"
#include "rref/rref.h"
#include "tensor/tensor.h"
#include "tests/distributed_job.h"

namespace hawser::tests {
namespace {

using dist_autograd::ContextScope;
using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;

inline constexpr rpc::Function<Tensor(double)> kMakeParameter{
    "optimizer.MakeParameter"};
// Makes a tensor that does not require gradients.
inline constexpr rpc::Function<Tensor()> kMakeConstant{
    "optimizer.MakeConstant"};

constexpr int64_t kLong = 1 << 20;
// Makes a parameter with that many zeros.
inline constexpr rpc::Function<Tensor()> kMakeLong{"optimizer.MakeLong"};
// Whether all elements are equal.
inline constexpr rref::Method<bool(Tensor&)> kIsUniform{"optimizer.IsUniform"};
// Changes the elements, and restores them in a second pass.
inline constexpr rref::Method<void(Tensor&)> kNegateTwice{
    "optimizer.NegateTwice"};

bool IsUniform(const Tensor& tensor) {
  const float* const elements = tensor.data<float>();
  return std::all_of(elements, elements + tensor.num_elements(),
                     [&](float element) { return element == elements[0]; });
}

void NegateTwice(Tensor& tensor) {
  float* const elements = tensor.data<float>();
  for (int pass = 0; pass < 2; ++pass) {
    std::transform(elements, elements + tensor.num_elements(), elements,
                   std::negate<float>());
  }
}

class DistributedOptimizerTest
    : public testing::TestWithParam<rpc::TransportParam> {
 protected:
  void SetUp() override {
    rpc::FunctionRegistry& r = job_.registry();
    ASSERT_THAT(r.Register(kMakeParameter,
                           [](double value) -> absl::StatusOr<Tensor> {
                             Tensor leaf = Tensor::Full({1}, value);
                             RETURN_IF_ERROR(autograd::SetRequiresGrad(leaf));
                             return leaf;
                           }),
                IsOk());
    ASSERT_THAT(r.Register(kMakeConstant, [] { return Tensor::Ones({1}); }),
                IsOk());
    ASSERT_THAT(r.Register(kMakeLong,
                           []() -> absl::StatusOr<Tensor> {
                             Tensor leaf = Tensor::Zeros({kLong});
                             RETURN_IF_ERROR(autograd::SetRequiresGrad(leaf));
                             return leaf;
                           }),
                IsOk());
    ASSERT_THAT(rref::RegisterMethod(r, kIsUniform, &IsUniform), IsOk());
    ASSERT_THAT(rref::RegisterMethod(r, kNegateTwice, &NegateTwice), IsOk());
    StartDistributed(job_, 3);
  }
  void TearDown() override { job_.StopAll(); }

  rpc::Agent& agent() { return job_.agent(0); }

  rpc::TestJob job_{rpc::MakeTransportFactory(GetParam())};
};

TEST_P(DistributedOptimizerTest, UsesOnlyTheGradientsOfItsContext) {
  auto a = rref::Remote(agent(), "w1", kMakeParameter, 1.0);
  auto b = rref::Remote(agent(), "w2", kMakeParameter, 1.0);
  ASSERT_THAT(a, IsOk());
  ASSERT_THAT(b, IsOk());
  auto optimizer = dist_optim::DistributedOptimizer::Create(
      agent(),
      {{optim::Sgd({.lr = 0.25}), {*a}}, {optim::Sgd({.lr = 0.125}), {*b}}});
  ASSERT_THAT(optimizer, IsOk());
  for (const bool with_b : {true, false}) {
    auto context = ContextScope::Open(agent());
    ASSERT_THAT(context, IsOk());
    auto here = a->ToHere();
    ASSERT_THAT(here, IsOk());
    auto loss = autograd::MulScalar(*here, 1);
    if (with_b) {
      auto other = b->ToHere();
      ASSERT_THAT(other, IsOk());
      loss = autograd::Add(*loss, *other);
    }
    ASSERT_THAT(dist_autograd::Backward(agent(), (*context)->id(), {*loss}),
                IsOk());
    ASSERT_THAT((*optimizer)->Step((*context)->id()), IsOk());
  }
  EXPECT_EQ(*a->ToHere()->item<float>(), 0.5f);
  EXPECT_EQ(*b->ToHere()->item<float>(), 0.875f);

  EXPECT_THAT((*optimizer)->SetLearningRate(1), IsOk());
  auto state = (*optimizer)->GetState();
  ASSERT_THAT(state, IsOk());
  ASSERT_EQ(state->size(), 2u);
  EXPECT_EQ((*state)[0].rule.Find("lr"), 1.0);
  EXPECT_EQ((*state)[0].parameters[0].step, 2);
  EXPECT_EQ((*state)[1].parameters[0].step, 1);
  EXPECT_THAT((*optimizer)->SetState(*state), IsOk());
  EXPECT_THAT((*optimizer)->SetState({}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT((*optimizer)->SetOption(2, "lr", 1),
              StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_THAT((*optimizer)->Step(dist_autograd::ContextId{777}),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST_P(DistributedOptimizerTest, MethodsSeeAParameterBetweenTwoSteps) {
  auto parameter = rref::Remote(agent(), "w1", kMakeLong);
  ASSERT_THAT(parameter, IsOk());
  auto optimizer = dist_optim::DistributedOptimizer::Create(
      agent(), optim::Sgd({.lr = 1}), {*parameter});
  ASSERT_THAT(optimizer, IsOk());
  for (int i = 0; i < 30; ++i) {
    auto context = ContextScope::Open(agent());
    ASSERT_THAT(context, IsOk());
    auto here = parameter->ToHere();
    ASSERT_THAT(here, IsOk());
    auto loss = autograd::Sum(*here);
    ASSERT_THAT(loss, IsOk());
    ASSERT_THAT(dist_autograd::Backward(agent(), (*context)->id(), {*loss}),
                IsOk());
    here = Tensor();
    const async::Future<void> step = (*optimizer)->StepAsync((*context)->id());
    do {
      EXPECT_THAT(rref::Sync(agent(), *parameter, kIsUniform),
                  IsOkAndHolds(true));
      // Lasts from one step to the next, or none at all.
      EXPECT_THAT(rref::Sync(agent(), *parameter, kNegateTwice), IsOk());
    } while (!step.ready());
    ASSERT_THAT(step.Wait(), IsOk());
  }
  const auto trained = parameter->ToHere();
  ASSERT_THAT(trained, IsOk());
  EXPECT_EQ(trained->data<float>()[kLong - 1], -30);
}

TEST_P(DistributedOptimizerTest, ErrorsNameTheOwner) {
  auto plain = rref::Remote(agent(), "w1", kMakeConstant);
  ASSERT_THAT(plain, IsOk());
  EXPECT_THAT(dist_optim::DistributedOptimizer::Create(
                  agent(), optim::Sgd({.lr = 1}), {*plain}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::AllOf(testing::HasSubstr("'w1'"),
                                      testing::HasSubstr("gradient"))));
  auto parameter = rref::Remote(agent(), "w1", kMakeParameter, 1.0);
  ASSERT_THAT(parameter, IsOk());
  EXPECT_THAT(dist_optim::DistributedOptimizer::Create(
                  agent(), optim::SparseAdam({}), {*parameter}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::AllOf(testing::HasSubstr("'w1'"),
                                      testing::HasSubstr("SparseAdam"))));
  EXPECT_THAT(dist_optim::DistributedOptimizer::Create(
                  agent(), optim::Sgd({.lr = 1}), {}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

INSTANTIATE_TEST_SUITE_P(Transports, DistributedOptimizerTest,
                         testing::ValuesIn(rpc::kTransportParams),
                         rpc::TransportParamName());

}  // namespace
}  // namespace hawser::tests
