// Tests of distributed autograd between real agents: contexts, errors and lost
// workers.

#include "dist_autograd/dist_autograd.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/future.h"
#include "async/status_macros.h"
#include "async/testing/status_matchers.h"
#include "autograd/graph_task.h"
#include "autograd/node.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/variable.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/agent/current_call.h"
#include "rpc/functions/function.h"
#include "rpc/testing/transport_test_param.h"
#include "rref/rref.h"
#include "tensor/ops/elementwise.h"
#include "tensor/tensor.h"
#include "tests/distributed_job.h"

namespace hawser::tests {
namespace {

using dist_autograd::ContextScope;
using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;

inline constexpr rpc::Function<Tensor(Tensor)> kSquare{"autograd.Square"};
// The function of the README, and a version that does not record the operation.
inline constexpr rpc::Function<Tensor(Tensor, Tensor)> kAdd{"first.Add"};
inline constexpr rpc::Function<Tensor(Tensor, Tensor)> kRawAdd{
    "autograd.RawAdd"};
// Squares a tensor on the named worker.
inline constexpr rpc::Function<Tensor(Tensor, std::string)> kSquareAt{
    "autograd.SquareAt"};
// Takes a tensor and returns nothing.
inline constexpr rpc::Function<void(Tensor)> kSwallow{"autograd.Swallow"};
// Returns two tensors, of which a loss may use one.
inline constexpr rpc::Function<std::vector<Tensor>(Tensor)> kTwo{
    "autograd.Two"};
inline constexpr rpc::Function<uint64_t()> kNumContexts{"autograd.NumContexts"};
// Functions whose backward pass fails, or waits for the gate.
inline constexpr rpc::Function<Tensor(Tensor)> kFailBackward{
    "autograd.FailBackward"};
inline constexpr rpc::Function<Tensor(Tensor)> kWaitBackward{
    "autograd.WaitBackward"};

Tensor Leaf(double value) {
  Tensor leaf = Tensor::Full({1}, value);
  EXPECT_THAT(autograd::SetRequiresGrad(leaf), IsOk());
  return leaf;
}

class IdentityNode final : public autograd::Node {
 public:
  IdentityNode(autograd::Edge edge, std::function<absl::Status()> end)
      : Node({std::move(edge)}), end_(std::move(end)) {}
  std::string_view name() const override { return "IdentityNode"; }
  absl::StatusOr<std::vector<Tensor>> Apply(
      std::vector<Tensor> gradients) override {
    RETURN_IF_ERROR(end_());
    return gradients;
  }

 private:
  const std::function<absl::Status()> end_;
};

// The identity function, with a backward pass that returns the status of `end`.
absl::StatusOr<Tensor> IdentityThat(const Tensor& x,
                                    std::function<absl::Status()> end) {
  ASSIGN_OR_RETURN(Tensor y, x.Detach().Clone());
  autograd::SetHistory(
      y, std::make_shared<IdentityNode>(autograd::GradEdge(x), std::move(end)),
      0);
  return y;
}

class DistAutogradTest : public testing::TestWithParam<rpc::TransportParam> {
 protected:
  void SetUp() override {
    rpc::FunctionRegistry& r = job_.registry();
    ASSERT_THAT(
        r.Register(kSquare, [](Tensor x) { return autograd::Mul(x, x); }),
        IsOk());
    ASSERT_THAT(
        r.Register(kAdd, [](const Tensor& a,
                            const Tensor& b) { return autograd::Add(a, b); }),
        IsOk());
    ASSERT_THAT(
        r.Register(kRawAdd, [](const Tensor& a,
                               const Tensor& b) { return tensor::Add(a, b); }),
        IsOk());
    ASSERT_THAT(r.Register(kSquareAt,
                           [](Tensor x, std::string worker) {
                             return rpc::CurrentCall::Get()->agent().Async(
                                 worker, kSquare, x);
                           }),
                IsOk());
    ASSERT_THAT(r.Register(kSwallow, [](Tensor) { return absl::OkStatus(); }),
                IsOk());
    ASSERT_THAT(r.Register(kTwo,
                           [](Tensor x) -> absl::StatusOr<std::vector<Tensor>> {
                             ASSIGN_OR_RETURN(Tensor a, autograd::Mul(x, x));
                             ASSIGN_OR_RETURN(Tensor b,
                                              autograd::MulScalar(x, 3));
                             return std::vector<Tensor>{a, b};
                           }),
                IsOk());
    ASSERT_THAT(r.Register(kNumContexts,
                           [] {
                             return static_cast<uint64_t>(
                                 NumContexts(rpc::CurrentCall::Get()->agent()));
                           }),
                IsOk());
    ASSERT_THAT(
        r.Register(kFailBackward,
                   [](Tensor x) {
                     return IdentityThat(x, [] {
                       return absl::DataLossError("failure of the test");
                     });
                   }),
        IsOk());
    ASSERT_THAT(r.Register(kWaitBackward,
                           [this](Tensor x) {
                             return IdentityThat(
                                 x, [gate = gate_future_, this] {
                                   reached_.Set(absl::OkStatus());
                                   return gate.Wait();
                                 });
                           }),
                IsOk());
    StartDistributed(job_, 3);
  }

  void TearDown() override {
    gate_.Set(absl::OkStatus());
    job_.StopAll();
  }

  // Contexts end later on other workers, so this shuts the workers down first.
  void ExpectContextsEnd() {
    for (const absl::Status& status : job_.ShutdownAll()) {
      EXPECT_THAT(status, IsOk());
    }
    for (int i = 0; i < 3; ++i) ExpectNothingLeft(job_.agent(i));
  }

  rpc::Agent& agent(int i = 0) { return job_.agent(i); }
  absl::StatusOr<float> GradientOf(const ContextScope& context,
                                   const Tensor& leaf) {
    ASSIGN_OR_RETURN(const dist_autograd::Gradients gradients,
                     dist_autograd::GetGradients(agent(), context.id()));
    const Tensor gradient = dist_autograd::FindGradient(gradients, leaf);
    if (!gradient.defined())
      return absl::NotFoundError("the leaf has no gradient");
    return gradient.item<float>();
  }

  async::Promise<void> gate_;
  async::Future<void> gate_future_ = gate_.future();
  async::Promise<void> reached_;
  rpc::TestJob job_{rpc::MakeTransportFactory(GetParam())};
};

TEST_P(DistAutogradTest, GradientReturnsThroughTwoWorkers) {
  {
    auto context = ContextScope::Open(agent());
    ASSERT_THAT(context, IsOk());
    const Tensor leaf = Leaf(3);
    auto y = agent().Sync("w1", kSquareAt, leaf, "w2");
    ASSERT_THAT(y, IsOk());
    ASSERT_THAT(dist_autograd::Backward(agent(), (*context)->id(), {*y}),
                IsOk());
    EXPECT_THAT(GradientOf(**context, leaf), async::IsOkAndHolds(6));
    EXPECT_FALSE(autograd::Grad(leaf).defined());
    EXPECT_THAT(agent().Sync("w2", kNumContexts), async::IsOkAndHolds(1u));
  }
  ExpectContextsEnd();
}

// The loss is 2 leaf + leaf; the first term is computed remotely.
TEST_P(DistAutogradTest, LocalAndRemoteGradientsAreAdded) {
  auto context = ContextScope::Open(agent());
  ASSERT_THAT(context, IsOk());
  const Tensor leaf = Leaf(5);
  const auto sum = agent().Sync("w1", kAdd, leaf, leaf);
  ASSERT_THAT(sum, IsOk());
  const auto loss = autograd::Add(*sum, leaf);
  ASSERT_THAT(loss, IsOk());
  ASSERT_THAT(dist_autograd::Backward(agent(), (*context)->id(), {*loss}),
              IsOk());
  EXPECT_THAT(GradientOf(**context, leaf), async::IsOkAndHolds(3));
}

TEST_P(DistAutogradTest, ErrorForAnUnrecordedResultNamesTheRemedy) {
  const Tensor leaf = Leaf(5);
  EXPECT_THAT(agent().Sync("w1", kRawAdd, leaf, leaf), IsOk());
  auto context = ContextScope::Open(agent());
  ASSERT_THAT(context, IsOk());
  EXPECT_THAT(agent().Sync("w1", kRawAdd, leaf, leaf),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       testing::AllOf(testing::HasSubstr("autograd::Add"),
                                      testing::HasSubstr("w1"))));
}

TEST_P(DistAutogradTest, UnusedResultsDoNotDelayASmartPass) {
  auto context = ContextScope::Open(agent());
  ASSERT_THAT(context, IsOk());
  const Tensor leaf = Leaf(3);
  auto used = agent().Sync("w1", kSquare, leaf);
  ASSERT_THAT(used, IsOk());
  ASSERT_THAT(agent().Sync("w1", kSquare, leaf), IsOk());
  ASSERT_THAT(agent().Sync("w1", kSquareAt, leaf, "w2"), IsOk());
  ASSERT_THAT(agent().Sync("w2", kSwallow, leaf), IsOk());
  ASSERT_THAT(dist_autograd::Backward(agent(), (*context)->id(), {*used}),
              IsOk());
  EXPECT_THAT(GradientOf(**context, leaf), async::IsOkAndHolds(6));
}

TEST_P(DistAutogradTest, LossMayUseOneOfTwoResults) {
  for (const auto mode : {dist_autograd::BackwardMode::kSmart,
                          dist_autograd::BackwardMode::kFast}) {
    auto context = ContextScope::Open(agent());
    ASSERT_THAT(context, IsOk());
    const Tensor leaf = Leaf(3);
    auto two = agent().Sync("w1", kTwo, leaf);
    ASSERT_THAT(two, IsOk());
    auto loss = autograd::Sum((*two)[1]);
    ASSERT_THAT(loss, IsOk());
    ASSERT_THAT(dist_autograd::Backward(agent(), (*context)->id(), {*loss},
                                        {.mode = mode}),
                IsOk());
    EXPECT_THAT(GradientOf(**context, leaf), async::IsOkAndHolds(3));
  }
}

TEST_P(DistAutogradTest, InvalidArgumentsAreRejectedBeforeThePass) {
  auto context = ContextScope::Open(agent());
  ASSERT_THAT(context, IsOk());
  EXPECT_THAT(ContextScope::Open(agent()),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  const dist_autograd::ContextId id = (*context)->id();
  const auto backward = [&](std::vector<Tensor> roots) {
    return dist_autograd::Backward(agent(), id, roots);
  };
  using Code = absl::StatusCode;
  EXPECT_THAT(backward({}), StatusIs(Code::kInvalidArgument));
  EXPECT_THAT(backward({Tensor::Ones({1})}), StatusIs(Code::kInvalidArgument));
  EXPECT_THAT(backward({Leaf(1)}), StatusIs(Code::kInvalidArgument));
  const Tensor wide = Tensor::Ones({2});
  ASSERT_THAT(autograd::SetRequiresGrad(wide), IsOk());
  EXPECT_THAT(backward({*autograd::Mul(wide, wide)}),
              StatusIs(Code::kInvalidArgument));
  const dist_autograd::ContextId unknown{12345};
  EXPECT_THAT(dist_autograd::Backward(agent(), unknown, {Leaf(1)}),
              StatusIs(Code::kNotFound));
  EXPECT_THAT(dist_autograd::GetGradients(agent(), unknown),
              StatusIs(Code::kNotFound));
  context->reset();
  EXPECT_THAT(backward({*autograd::Mul(Leaf(1), Leaf(1))}),
              StatusIs(Code::kNotFound));
  EXPECT_THAT(dist_autograd::GetGradients(agent(), id),
              StatusIs(Code::kNotFound));
}

TEST_P(DistAutogradTest, ErrorOfALocalBackwardThroughAFetchNamesTheRemedy) {
  auto context = ContextScope::Open(agent());
  ASSERT_THAT(context, IsOk());
  auto y = agent().Sync("w1", kSquare, Leaf(3));
  ASSERT_THAT(y, IsOk());
  const auto pass = dist_autograd::EngineOf(agent());
  ASSERT_THAT(pass, IsOk());
  auto task = autograd::GraphTask::Create({autograd::GradEdge(*y)}, {});
  ASSERT_THAT(task, IsOk());
  ASSERT_THAT((*task)->Run({Tensor::Ones({1})}), IsOk());
  EXPECT_THAT((*task)->done().Wait(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       testing::HasSubstr("dist_autograd::Backward")));
}

TEST_P(DistAutogradTest, ErrorOfAnotherWorkerNamesIt) {
  auto context = ContextScope::Open(agent());
  ASSERT_THAT(context, IsOk());
  auto y = agent().Sync("w1", kFailBackward, Leaf(3));
  ASSERT_THAT(y, IsOk());
  EXPECT_THAT(
      dist_autograd::Backward(agent(), (*context)->id(), {*y}),
      StatusIs(absl::StatusCode::kDataLoss,
               testing::AllOf(testing::HasSubstr("'w1'"),
                              testing::HasSubstr("failure of the test"))));
  // The context can be used again.
  const Tensor leaf = Leaf(3);
  auto good = agent().Sync("w1", kSquare, leaf);
  ASSERT_THAT(good, IsOk());
  EXPECT_THAT(dist_autograd::Backward(agent(), (*context)->id(), {*good}),
              IsOk());
  EXPECT_THAT(GradientOf(**context, leaf), async::IsOkAndHolds(6));
}

TEST_P(DistAutogradTest, SecondPassRequiresARetainedGraph) {
  auto context = ContextScope::Open(agent());
  ASSERT_THAT(context, IsOk());
  const Tensor leaf = Leaf(3);
  auto y = agent().Sync("w1", kSquare, leaf);
  ASSERT_THAT(y, IsOk());
  const auto backward = [&](bool retain) {
    return dist_autograd::Backward(agent(), (*context)->id(), {*y},
                                   {.retain_graph = retain});
  };
  EXPECT_THAT(backward(true), IsOk());
  EXPECT_THAT(backward(false), IsOk());
  EXPECT_THAT(GradientOf(**context, leaf), async::IsOkAndHolds(12));
  EXPECT_THAT(backward(false), StatusIs(absl::StatusCode::kFailedPrecondition,
                                        testing::HasSubstr("'w1'")));
  EXPECT_THAT(GradientOf(**context, leaf), async::IsOkAndHolds(12));
}

TEST_P(DistAutogradTest, GradientsOfTwoTrainersAreSeparate) {
  auto train = [&](int me, double value) {
    auto context = ContextScope::Open(agent(me));
    ASSERT_THAT(context, IsOk());
    const Tensor leaf = Leaf(value);
    auto y = agent(me).Sync("w2", kSquare, leaf);
    ASSERT_THAT(y, IsOk());
    ASSERT_THAT(dist_autograd::Backward(agent(me), (*context)->id(), {*y}),
                IsOk());
    auto gradients = dist_autograd::GetGradients(agent(me), (*context)->id());
    ASSERT_THAT(gradients, IsOk());
    ASSERT_EQ(gradients->size(), 1u);
    EXPECT_EQ(*(*gradients)[0].gradient.item<float>(), 2 * value);
  };
  std::thread other([&] {
    for (int i = 0; i < 10; ++i) train(1, i);
  });
  for (int i = 0; i < 10; ++i) train(0, 100 + i);
  other.join();
  ExpectContextsEnd();
}

TEST_P(DistAutogradTest, ContextMayEndDuringItsPass) {
  auto context = ContextScope::Open(agent());
  ASSERT_THAT(context, IsOk());
  auto y = agent().Sync("w1", kWaitBackward, Leaf(3));
  ASSERT_THAT(y, IsOk());
  async::Future<void> reached = reached_.future();
  async::Future<void> done =
      dist_autograd::BackwardAsync(agent(), (*context)->id(), {*y});
  ASSERT_THAT(reached.Wait(), IsOk());
  context->reset();
  EXPECT_THAT(done.Wait(), StatusIs(absl::StatusCode::kAborted));
  gate_.Set(absl::OkStatus());
  ExpectContextsEnd();
}

TEST_P(DistAutogradTest, LostWorkerEndsThePassAndIsNamed) {
  auto context = ContextScope::Open(agent());
  ASSERT_THAT(context, IsOk());
  auto y = agent().Sync("w1", kWaitBackward, Leaf(3));
  ASSERT_THAT(y, IsOk());
  async::Future<void> reached = reached_.future();
  async::Future<void> done =
      dist_autograd::BackwardAsync(agent(), (*context)->id(), {*y});
  ASSERT_THAT(reached.Wait(), IsOk());
  std::thread stop([&] { job_.owned(1)->Shutdown(false).IgnoreError(); });
  EXPECT_THAT(done.Wait(), StatusIs(absl::StatusCode::kUnavailable,
                                    testing::HasSubstr("w1")));
  gate_.Set(absl::OkStatus());
  stop.join();
}

TEST_P(DistAutogradTest, ContextsOfALostWorkerEnd) {
  auto context = ContextScope::Open(agent(1));
  ASSERT_THAT(context, IsOk());
  auto y = agent(1).Sync("w2", kSquare, Leaf(3));
  ASSERT_THAT(y, IsOk());
  EXPECT_EQ(NumContexts(agent(2)), 1u);
  job_.owned(1)->Shutdown(false).IgnoreError();
  // A call to the worker detects its loss.
  EXPECT_THAT(agent(2).Sync("w1", kNumContexts), testing::Not(IsOk()));
  while (NumContexts(agent(2)) > 0) std::this_thread::yield();
}

TEST_P(DistAutogradTest, BackwardFromAReference) {
  auto context = ContextScope::Open(agent());
  ASSERT_THAT(context, IsOk());
  const Tensor leaf = Leaf(3);
  auto loss = rref::Remote(agent(), "w1", kSquare, leaf);
  ASSERT_THAT(loss, IsOk());
  ASSERT_THAT(loss->WhenConfirmed().Wait(), IsOk());
  ASSERT_THAT(dist_autograd::Backward(agent(), (*context)->id(), *loss),
              IsOk());
  EXPECT_THAT(GradientOf(**context, leaf), async::IsOkAndHolds(6));
}

INSTANTIATE_TEST_SUITE_P(Transports, DistAutogradTest,
                         testing::ValuesIn(rpc::kTransportParams),
                         rpc::TransportParamName());

}  // namespace
}  // namespace hawser::tests
