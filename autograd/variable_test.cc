#include "autograd/variable.h"

#include <memory>
#include <thread>
#include <vector>

#include "async/testing/status_matchers.h"
#include "autograd/accumulate_grad.h"
#include "autograd/fake_node.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::autograd {
namespace {

using async::IsOk;
using async::StatusIs;
using tensor::DType;
using testing::ElementsAre;

constexpr auto kFailedPrecondition = absl::StatusCode::kFailedPrecondition;
constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

Tensor Leaf() {
  const Tensor leaf = Tensor::FromVector<float>({1, 2}, {2});
  EXPECT_THAT(SetRequiresGrad(leaf), IsOk());
  return leaf;
}

Tensor Result(std::shared_ptr<Node> node) {
  const Tensor result = Tensor::Zeros({2});
  SetHistory(result, std::move(node), 0);
  return result;
}

TEST(VariableTest, OnlyMarkedAndRecordedTensorsRequireAGradient) {
  EXPECT_FALSE(RequiresGrad(Tensor()));
  EXPECT_FALSE(RequiresGrad(Tensor::Zeros({2})));
  EXPECT_TRUE(RequiresGrad(Leaf()));
  const auto node = std::make_shared<FakeNode>("node", std::vector<Edge>{});
  const Tensor result = Result(node);
  EXPECT_TRUE(RequiresGrad(result));
  EXPECT_FALSE(RequiresGrad(Detach(result)));
  EXPECT_TRUE(IsLeaf(Leaf()));
  EXPECT_TRUE(IsLeaf(Tensor::Zeros({2})));
  EXPECT_FALSE(IsLeaf(result));
}

TEST(VariableTest, SetRequiresGradRejectsTensorsThatCannotHaveGradients) {
  EXPECT_THAT(SetRequiresGrad(Tensor()), StatusIs(kInvalidArgument));
  EXPECT_THAT(SetRequiresGrad(Tensor::Arange(3, {DType::kI64})),
              StatusIs(kInvalidArgument));
  EXPECT_THAT(SetRequiresGrad(Tensor::Arange(3, {DType::kI64}), false), IsOk());
  const auto node = std::make_shared<FakeNode>("node", std::vector<Edge>{});
  const Tensor result = Result(node);
  EXPECT_THAT(SetRequiresGrad(result, true), IsOk());
  EXPECT_THAT(SetRequiresGrad(result, false), StatusIs(kFailedPrecondition));
}

TEST(VariableTest, SwitchingRequiresGradOffDropsTheGradient) {
  const Tensor leaf = Leaf();
  ASSERT_THAT(SetGrad(leaf, Tensor::Ones({2})), IsOk());
  ASSERT_THAT(SetRequiresGrad(leaf, false), IsOk());
  EXPECT_FALSE(RequiresGrad(leaf));
  EXPECT_FALSE(Grad(leaf).defined());
  EXPECT_FALSE(GradEdge(leaf));
}

TEST(VariableTest, GradientCanBeSetAndZeroed) {
  const Tensor leaf = Leaf();
  EXPECT_FALSE(Grad(leaf).defined());
  const Tensor gradient = Tensor::Ones({2});
  ASSERT_THAT(SetGrad(leaf, gradient), IsOk());
  EXPECT_TRUE(Grad(leaf).is_same(gradient));
  ZeroGrad(leaf);
  EXPECT_FALSE(Grad(leaf).defined());
  ASSERT_THAT(SetGrad(leaf, gradient), IsOk());
  ASSERT_THAT(SetGrad(leaf, Tensor()), IsOk());
  EXPECT_FALSE(Grad(leaf).defined());
  // Without effect, because it is not a leaf that requires a gradient.
  ZeroGrad(Tensor::Zeros({2}));
  ZeroGrad(Tensor());
}

TEST(VariableTest, SetGradChecksTheGradient) {
  const Tensor leaf = Leaf();
  EXPECT_THAT(SetGrad(leaf, Tensor::Ones({3})), StatusIs(kInvalidArgument));
  EXPECT_THAT(SetGrad(leaf, Tensor::Ones({2}, {DType::kF64})),
              StatusIs(kInvalidArgument));
  EXPECT_THAT(SetGrad(Tensor(), Tensor()), StatusIs(kInvalidArgument));
  EXPECT_THAT(SetGrad(Tensor::Zeros({2}), Tensor::Ones({2})),
              StatusIs(kFailedPrecondition));
  const auto node = std::make_shared<FakeNode>("node", std::vector<Edge>{});
  EXPECT_THAT(SetGrad(Result(node), Tensor::Ones({2})),
              StatusIs(kFailedPrecondition));
}

TEST(VariableTest, LeafHasOneAccumulatorWhileAGraphHoldsIt) {
  const Tensor leaf = Leaf();
  const Edge first = GradEdge(leaf);
  EXPECT_EQ(first.node, GradEdge(leaf).node);
  ASSERT_NE(first.node->accumulator(), nullptr);
  EXPECT_TRUE(first.node->accumulator()->variable().is_same(leaf));
}

TEST(VariableTest, ResultPointsToItsNode) {
  auto node = std::make_shared<FakeNode>(
      "node", std::vector<Edge>{}, 3,
      [](std::vector<Tensor>) { return std::vector<Tensor>(); });
  const Tensor result = Tensor::Zeros({2});
  SetHistory(result, node, 2);
  EXPECT_EQ(GradEdge(result).node, node);
  EXPECT_EQ(GradEdge(result).input_index, 2);
  EXPECT_FALSE(GradEdge(Detach(result)));
}

TEST(VariableTest, GraphKeepsItsLeavesAlive) {
  Edge edge = GradEdge(Leaf());
  const Tensor leaf = edge.node->accumulator()->variable();
  EXPECT_TRUE(RequiresGrad(leaf));
}

TEST(VariableTest, HooksNeedATensorThatRequiresAGradient) {
  const auto hook = [](const Tensor& g) -> absl::StatusOr<Tensor> { return g; };
  const auto post = [](const Tensor&) { return absl::OkStatus(); };
  const Tensor plain = Tensor::Zeros({2});
  EXPECT_THAT(RegisterHook(plain, hook), StatusIs(kFailedPrecondition));
  EXPECT_THAT(RegisterHook(Tensor(), hook), StatusIs(kInvalidArgument));
  EXPECT_THAT(RegisterPostAccumulateHook(plain, post),
              StatusIs(kFailedPrecondition));
  EXPECT_THAT(RegisterPostAccumulateHook(Tensor(), post),
              StatusIs(kInvalidArgument));
  const auto node = std::make_shared<FakeNode>("node", std::vector<Edge>{});
  EXPECT_THAT(RegisterPostAccumulateHook(Result(node), post),
              StatusIs(kFailedPrecondition));
}

TEST(VariableTest, ConcurrentFirstUsesOfALeafShareOneAccumulator) {
  const Tensor leaf = Leaf();
  std::vector<Edge> edges(4);
  std::vector<std::thread> threads;
  for (Edge& edge : edges) {
    threads.emplace_back([&edge, leaf] { edge = GradEdge(leaf); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Edge& edge : edges) EXPECT_EQ(edge.node, edges[0].node);
}

TEST(VariableDeathTest, LeafThatRequiresAGradientRejectsAHistory) {
  const auto node = std::make_shared<FakeNode>("node", std::vector<Edge>{});
  EXPECT_DEATH(SetHistory(Leaf(), node, 0), "history of node");
  EXPECT_DEATH(SetHistory(Tensor::Zeros({2}), node, 1),
               "does not have output 1");
}

}  // namespace
}  // namespace hawser::autograd
