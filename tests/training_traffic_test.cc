// Tests of the calls of a training step with remote parameters, and of the
// bytes that they send and copy.

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/future.h"
#include "async/testing/status_matchers.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/variable.h"
#include "dist_autograd/dist_autograd.h"
#include "dist_optim/distributed_optimizer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "optim/sgd.h"
#include "rpc/functions/function.h"
#include "rpc/testing/fakes/call_counter.h"
#include "rpc/testing/transport_test_param.h"
#include "rref/rref.h"
#include "tensor/tensor.h"
#include "tests/distributed_job.h"

namespace hawser::tests {
namespace {

using ::hawser::async::IsOk;

constexpr int64_t kElements = 65536;
constexpr uint64_t kBytes = kElements * sizeof(float);

inline constexpr rpc::Function<Tensor(double)> kMakeParameter{
    "tests.MakeParameter"};

absl::StatusOr<Tensor> MakeParameter(double value) {
  Tensor t = Tensor::Full({kElements}, value);
  if (absl::Status status = autograd::SetRequiresGrad(t); !status.ok()) {
    return status;
  }
  return t;
}

template <class T>
bool PollsOrIsReady(const async::Future<T>& future) {
  return future.ready() || future.wait_poller() != nullptr;
}

class TrainingTrafficTest : public testing::TestWithParam<rpc::TransportParam> {
 protected:
  void SetUp() override {
    ASSERT_THAT(job_.registry().Register(kMakeParameter, MakeParameter),
                IsOk());
    StartDistributed(job_, 2);
  }

  rpc::TestJob job_{rpc::MakeTransportFactory(GetParam())};
};

TEST_P(TrainingTrafficTest, ParameterAndGradientAreSentOnce) {
  rpc::Agent& trainer = job_.agent(0);
  rpc::Agent& owner = job_.agent(1);
  auto parameter = rref::Remote(trainer, "w1", kMakeParameter, 3.0);
  ASSERT_THAT(parameter, IsOk());
  auto optimizer = dist_optim::DistributedOptimizer::Create(
      trainer, optim::Sgd({.lr = 0.25}), {*parameter});
  ASSERT_THAT(optimizer, IsOk());
  const rpc::TransferTotals trainer_before = trainer.transfer_totals();
  const rpc::TransferTotals owner_before = owner.transfer_totals();
  {
    auto context = dist_autograd::ContextScope::Open(trainer);
    ASSERT_THAT(context, IsOk());
    auto here = parameter->ToHere();
    ASSERT_THAT(here, IsOk());
    auto square = autograd::Mul(*here, *here);
    ASSERT_THAT(square, IsOk());
    auto loss = autograd::Sum(*square);
    ASSERT_THAT(loss, IsOk());
    ASSERT_THAT(dist_autograd::Backward(trainer, (*context)->id(), {*loss}),
                IsOk());
    ASSERT_THAT((*optimizer)->Step((*context)->id()), IsOk());
  }
  const rpc::TransferTotals trainer_after = trainer.transfer_totals();
  const rpc::TransferTotals owner_after = owner.transfer_totals();
  // The parameter is sent in one direction and its gradient in the other, with
  // one copy at each receiver.
  for (const auto& [before, after] : {std::pair(trainer_before, trainer_after),
                                      std::pair(owner_before, owner_after)}) {
    EXPECT_EQ(after.tensor_bytes_sent - before.tensor_bytes_sent, kBytes);
    EXPECT_EQ(after.tensor_bytes_received - before.tensor_bytes_received,
              kBytes);
    EXPECT_EQ(after.tensor_bytes_copied_to_receive -
                  before.tensor_bytes_copied_to_receive,
              kBytes);
    EXPECT_EQ(
        after.tensor_bytes_copied_to_send - before.tensor_bytes_copied_to_send,
        0u);
  }
  // 3 - 0.25 * (2 * 3).
  auto updated = parameter->ToHere();
  ASSERT_THAT(updated, IsOk());
  EXPECT_EQ(updated->data<float>()[0], 1.5f);
  EXPECT_EQ(updated->data<float>()[kElements - 1], 1.5f);
}

// The number of calls does not grow with the number of parameters.
TEST_P(TrainingTrafficTest, StepCallsEachOwnerOnce) {
  const auto counter = std::make_shared<rpc::CallCounter>();
  rpc::TestJob job{rpc::MakeTransportFactory(GetParam())};
  ASSERT_THAT(job.registry().Register(kMakeParameter, MakeParameter), IsOk());
  job.StartAll(3, [&](int rank, rpc::AgentOptions& options) {
    AddServices(options);
    if (rank == 0) options.observers.push_back(counter);
  });
  rpc::Agent& trainer = job.agent(0);
  std::vector<rref::RRef<Tensor>> parameters;
  for (int i = 0; i < 6; ++i) {
    auto parameter =
        rref::Remote(trainer, i % 2 == 0 ? "w1" : "w2", kMakeParameter, 3.0);
    ASSERT_THAT(parameter, IsOk());
    ASSERT_THAT(parameter->WhenConfirmed().Wait(), IsOk());
    parameters.push_back(*parameter);
  }
  {
    auto optimizer = dist_optim::DistributedOptimizer::Create(
        trainer, optim::Sgd({.lr = 0.25}), parameters);
    ASSERT_THAT(optimizer, IsOk());
    auto context = dist_autograd::ContextScope::Open(trainer);
    ASSERT_THAT(context, IsOk());
    auto here = rref::ToHereAll(parameters);
    ASSERT_THAT(here, IsOk());
    Tensor loss = Tensor::Zeros({});
    for (const Tensor& parameter : *here) {
      auto sum = autograd::Add(loss, *autograd::Sum(parameter));
      ASSERT_THAT(sum, IsOk());
      loss = *sum;
    }
    ASSERT_THAT(dist_autograd::Backward(trainer, (*context)->id(), {loss}),
                IsOk());
    ASSERT_THAT((*optimizer)->Step((*context)->id()), IsOk());
    ASSERT_THAT((*optimizer)->GetState(), IsOk());
  }
  for (const char* method :
       {"DistOptimService.CreateOptimizer", "RRefService.Fetch",
        "DistAutogradService.Gradient", "DistOptimService.Step",
        "DistOptimService.GetOptimizerState"}) {
    EXPECT_THAT(
        counter->CountsOf(absl::StrCat("hawser.v1.", method)),
        testing::ElementsAre(testing::Pair("w1", 1), testing::Pair("w2", 1)))
        << method;
  }
  // 3 - 0.25.
  auto updated = rref::ToHereAll(parameters);
  ASSERT_THAT(updated, IsOk());
  for (const Tensor& parameter : *updated) {
    EXPECT_EQ(parameter.data<float>()[kElements - 1], 2.75f);
  }
  parameters.clear();
  job.StopAll();
}

// Otherwise each of them costs a wake-up.
TEST_P(TrainingTrafficTest, WaitsOfAStepPollForTheirReplies) {
  rpc::Agent& trainer = job_.agent(0);
  auto parameter = rref::Remote(trainer, "w1", kMakeParameter, 3.0);
  ASSERT_THAT(parameter, IsOk());
  auto optimizer = dist_optim::DistributedOptimizer::Create(
      trainer, optim::Sgd({.lr = 0.25}), {*parameter});
  ASSERT_THAT(optimizer, IsOk());
  auto context = dist_autograd::ContextScope::Open(trainer);
  ASSERT_THAT(context, IsOk());
  const std::vector<rref::RRef<Tensor>> parameters = {*parameter};
  async::Future<std::vector<Tensor>> here = rref::ToHereAllAsync(parameters);
  EXPECT_TRUE(PollsOrIsReady(here));
  ASSERT_THAT(here.Wait(), IsOk());
  auto loss = autograd::Sum(here.result()->front());
  ASSERT_THAT(loss, IsOk());
  async::Future<void> backward =
      dist_autograd::BackwardAsync(trainer, (*context)->id(), {*loss});
  EXPECT_TRUE(PollsOrIsReady(backward));
  ASSERT_THAT(backward.Wait(), IsOk());
  async::Future<void> step = (*optimizer)->StepAsync((*context)->id());
  EXPECT_TRUE(PollsOrIsReady(step));
  ASSERT_THAT(step.Wait(), IsOk());
  async::Future<Tensor> updated = parameter->ToHereAsync();
  EXPECT_TRUE(PollsOrIsReady(updated));
  ASSERT_THAT(updated.Wait(), IsOk());
  EXPECT_EQ(updated.result()->data<float>()[0], 2.75f);
}

INSTANTIATE_TEST_SUITE_P(Transports, TrainingTrafficTest,
                         testing::ValuesIn(rpc::kTransportParams),
                         rpc::TransportParamName());

}  // namespace
}  // namespace hawser::tests
