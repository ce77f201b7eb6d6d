// Tests of training in a dynamic job: workers join and leave while references,
// autograd contexts and optimizers exist.

#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/status_macros.h"
#include "async/testing/status_matchers.h"
#include "autograd/ops/elementwise.h"
#include "autograd/variable.h"
#include "dist_autograd/dist_autograd.h"
#include "dist_optim/distributed_optimizer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "optim/sgd.h"
#include "rpc/agent/current_call.h"
#include "rpc/functions/function.h"
#include "rpc/testing/transport_test_param.h"
#include "rref/rref.h"
#include "tensor/tensor.h"
#include "tests/distributed_job.h"

namespace hawser::tests {
namespace {

using dist_autograd::ContextScope;
using dist_optim::DistributedOptimizer;
using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::HasSubstr;

constexpr double kLearningRate = 0.25;

inline constexpr rpc::Function<Tensor(double)> kMakeParameter{
    "dynamic.MakeParameter"};
inline constexpr rpc::Function<Tensor(Tensor)> kSquare{"dynamic.Square"};
// Trains one step on the worker that runs it. The loss is the square of the
// parameter.
inline constexpr rpc::Function<void(rref::RRef<Tensor>)> kTrain{
    "dynamic.Train"};

absl::StatusOr<Tensor> MakeParameter(double value) {
  Tensor leaf = Tensor::Full({1}, value);
  RETURN_IF_ERROR(autograd::SetRequiresGrad(leaf));
  return leaf;
}

absl::Status Train(rref::RRef<Tensor> parameter) {
  rpc::Agent& agent = rpc::CurrentCall::Get()->agent();
  ASSIGN_OR_RETURN(auto optimizer,
                   DistributedOptimizer::Create(
                       agent, optim::Sgd({.lr = kLearningRate}), {parameter}));
  ASSIGN_OR_RETURN(auto context, ContextScope::Open(agent));
  ASSIGN_OR_RETURN(Tensor x, parameter.ToHere());
  ASSIGN_OR_RETURN(Tensor loss, autograd::Mul(x, x));
  RETURN_IF_ERROR(dist_autograd::Backward(agent, context->id(), {loss}));
  return optimizer->Step(context->id());
}

class DynamicTrainingTest : public testing::TestWithParam<rpc::TransportParam> {
 protected:
  void SetUp() override {
    rpc::FunctionRegistry& r = job_.registry();
    ASSERT_THAT(r.Register(kMakeParameter, MakeParameter), IsOk());
    ASSERT_THAT(
        r.Register(kSquare, [](Tensor x) { return autograd::Mul(x, x); }),
        IsOk());
    ASSERT_THAT(r.Register(kTrain, Train), IsOk());
    JoinDistributed(job_, 0);
    JoinDistributed(job_, 1);
  }
  void TearDown() override { job_.StopAll(); }

  rpc::Agent& agent(int rank = 0) { return job_.agent(rank); }

  absl::StatusOr<std::unique_ptr<DistributedOptimizer>> Optimize(
      std::vector<rref::RRef<Tensor>> parameters) {
    return DistributedOptimizer::Create(
        agent(), optim::Sgd({.lr = kLearningRate}), std::move(parameters));
  }
  static absl::StatusOr<float> ValueOf(const rref::RRef<Tensor>& parameter) {
    ASSIGN_OR_RETURN(const Tensor value, parameter.ToHere());
    return value.item<float>();
  }
  void ExpectNothingLeftAnywhere(int num_workers) {
    for (const absl::Status& status : job_.ShutdownAll()) {
      EXPECT_THAT(status, IsOk());
    }
    for (int i = 0; i < num_workers; ++i) ExpectNothingLeft(agent(i));
  }

  rpc::TestJob job_{rpc::MakeTransportFactory(GetParam())};
};

TEST_P(DynamicTrainingTest, NewWorkerUsesAndOwnsParameters) {
  {
    auto a = rref::Remote(agent(), "w1", kMakeParameter, 2.0);
    ASSERT_THAT(a, IsOk());
    auto optimizer = Optimize({*a});
    ASSERT_THAT(optimizer, IsOk());
    {
      auto context = ContextScope::Open(agent());
      ASSERT_THAT(context, IsOk());
      auto x = a->ToHere();
      ASSERT_THAT(x, IsOk());
      JoinDistributed(job_, 2);
      auto loss = agent().Sync("w2", kSquare, *x);
      ASSERT_THAT(loss, IsOk());
      ASSERT_THAT(dist_autograd::Backward(agent(), (*context)->id(), {*loss}),
                  IsOk());
      ASSERT_THAT((*optimizer)->Step((*context)->id()), IsOk());
    }
    EXPECT_THAT(ValueOf(*a), IsOkAndHolds(1));

    // It trains an existing parameter,
    ASSERT_THAT(agent().Sync("w2", kTrain, *a), IsOk());
    EXPECT_THAT(ValueOf(*a), IsOkAndHolds(0.5));
    // and owns a new one.
    auto b = rref::Remote(agent(), "w2", kMakeParameter, 4.0);
    ASSERT_THAT(b, IsOk());
    auto both = Optimize({*a, *b});
    ASSERT_THAT(both, IsOk());
    auto context = ContextScope::Open(agent());
    ASSERT_THAT(context, IsOk());
    auto loss = autograd::Mul(*a->ToHere(), *b->ToHere());
    ASSERT_THAT(loss, IsOk());
    ASSERT_THAT(dist_autograd::Backward(agent(), (*context)->id(), {*loss}),
                IsOk());
    ASSERT_THAT((*both)->Step((*context)->id()), IsOk());
    EXPECT_THAT(ValueOf(*a), IsOkAndHolds(-0.5));
    EXPECT_THAT(ValueOf(*b), IsOkAndHolds(3.875));
  }
  ExpectNothingLeftAnywhere(3);
}

TEST_P(DynamicTrainingTest, TrainingContinuesAfterAWorkerLeaves) {
  JoinDistributed(job_, 2);
  {
    auto a = rref::Remote(agent(), "w1", kMakeParameter, 2.0);
    ASSERT_THAT(a, IsOk());
    auto optimizer = Optimize({*a});
    ASSERT_THAT(optimizer, IsOk());
    // The worker that leaves has trained the parameter before.
    ASSERT_THAT(agent().Sync("w2", kTrain, *a), IsOk());
    EXPECT_THAT(ValueOf(*a), IsOkAndHolds(1));

    auto context = ContextScope::Open(agent());
    ASSERT_THAT(context, IsOk());
    auto x = a->ToHere();
    ASSERT_THAT(x, IsOk());
    auto loss = agent().Sync("w1", kSquare, *x);
    ASSERT_THAT(loss, IsOk());
    ASSERT_THAT(agent(2).Leave().Wait(), IsOk());
    ASSERT_THAT(dist_autograd::Backward(agent(), (*context)->id(), {*loss}),
                IsOk());
    ASSERT_THAT((*optimizer)->Step((*context)->id()), IsOk());
    EXPECT_THAT(ValueOf(*a), IsOkAndHolds(0.5));
  }
  ExpectNothingLeftAnywhere(3);
}

// Only the worker that left could know if the loss depends on its messages.
TEST_P(DynamicTrainingTest, ContextThroughAWorkerThatLeftGivesAnError) {
  JoinDistributed(job_, 2);
  {
    auto context = ContextScope::Open(agent());
    ASSERT_THAT(context, IsOk());
    auto leaf = MakeParameter(3);
    ASSERT_THAT(leaf, IsOk());
    auto through = agent().Sync("w2", kSquare, *leaf);
    ASSERT_THAT(through, IsOk());
    auto past = agent().Sync("w1", kSquare, *leaf);
    ASSERT_THAT(past, IsOk());
    ASSERT_THAT(agent(2).Leave().Wait(), IsOk());
    for (const Tensor& loss : {*through, *past}) {
      EXPECT_THAT(dist_autograd::Backward(agent(), (*context)->id(), {loss}),
                  StatusIs(absl::StatusCode::kUnavailable, HasSubstr("'w2'")));
    }
  }
  ExpectNothingLeftAnywhere(3);
}

TEST_P(DynamicTrainingTest, ContextsOfAWorkerThatLeavesEndWithIt) {
  JoinDistributed(job_, 2);
  auto context = ContextScope::Open(agent(2));
  ASSERT_THAT(context, IsOk());
  auto leaf = MakeParameter(3);
  ASSERT_THAT(leaf, IsOk());
  ASSERT_THAT(agent(2).Sync("w1", kSquare, *leaf), IsOk());
  EXPECT_EQ(NumContexts(agent(1)), 1u);
  ASSERT_THAT(agent(2).Leave().Wait(), IsOk());
  while (NumContexts(agent(1)) > 0) std::this_thread::yield();
  context->reset();
  ExpectNothingLeftAnywhere(3);
}

INSTANTIATE_TEST_SUITE_P(Transports, DynamicTrainingTest,
                         testing::ValuesIn(rpc::kTransportParams),
                         rpc::TransportParamName());

}  // namespace
}  // namespace hawser::tests
