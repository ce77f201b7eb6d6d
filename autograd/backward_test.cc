#include "autograd/backward.h"

#include <memory>
#include <string>
#include <vector>

#include "async/testing/status_matchers.h"
#include "autograd/fake_node.h"
#include "autograd/grad_mode.h"
#include "autograd/gradcheck.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/variable.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::autograd {
namespace {

using async::IsOk;
using async::StatusIs;
using tensor::DType;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr auto kFailedPrecondition = absl::StatusCode::kFailedPrecondition;
constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

double GradOf(const Tensor& leaf) {
  return Grad(leaf).defined() ? *Grad(leaf).item<double>() : -1;
}

// A root produced by `node`.
Tensor RootOf(std::shared_ptr<Node> node) {
  const Tensor root = Tensor::Scalar(1, {DType::kF64});
  SetHistory(root, std::move(node), 0);
  return root;
}

TEST(BackwardTest, Chain) {
  const Tensor x = Variable({3}, {});
  const Tensor y = *Square(*MulScalar(x, 2));
  ASSERT_THAT(Backward(y), IsOk());
  EXPECT_EQ(GradOf(x), 24);
}

TEST(BackwardTest, DiamondRunsItsJoinOnceWithTheSum) {
  std::vector<std::string> log;
  const Tensor x = Variable({3}, {});
  const auto bottom =
      std::make_shared<FakeNode>("bottom", std::vector{GradEdge(x)}, &log);
  const auto left =
      std::make_shared<FakeNode>("left", std::vector<Edge>{{bottom, 0}}, &log);
  const auto right =
      std::make_shared<FakeNode>("right", std::vector<Edge>{{bottom, 0}}, &log);
  const auto top = std::make_shared<FakeNode>(
      "top", std::vector<Edge>{{left, 0}, {right, 0}}, &log);
  ASSERT_THAT(Backward(RootOf(top)), IsOk());
  EXPECT_THAT(log, ElementsAre("top", "right", "left", "bottom"));
  EXPECT_EQ(GradOf(x), 2);
}

TEST(BackwardTest, LaterOperationsRunFirstAndLeavesImmediately) {
  std::vector<std::string> log;
  const Tensor x = Variable({3}, {});
  const Tensor y = Variable({3}, {});
  ASSERT_THAT(RegisterPostAccumulateHook(y,
                                         [&](const Tensor&) {
                                           log.push_back("y");
                                           return absl::OkStatus();
                                         }),
              IsOk());
  const auto a =
      std::make_shared<FakeNode>("a", std::vector{GradEdge(x)}, &log);
  const auto b =
      std::make_shared<FakeNode>("b", std::vector<Edge>{{a, 0}}, &log);
  const auto c =
      std::make_shared<FakeNode>("c", std::vector{GradEdge(x)}, &log);
  // The edges name the earlier node first.
  const auto d = std::make_shared<FakeNode>(
      "d", std::vector<Edge>{{b, 0}, {c, 0}, GradEdge(y)}, &log);
  ASSERT_THAT(Backward(RootOf(d)), IsOk());
  EXPECT_THAT(log, ElementsAre("d", "y", "c", "b", "a"));
}

TEST(BackwardTest, TensorUsedSeveralTimesGetsTheSum) {
  const Tensor x = Variable({3}, {});
  // x^3 + x, which uses x three times directly.
  const Tensor y = *Add(*Mul(*Mul(x, x), x), x);
  ASSERT_THAT(Backward(y), IsOk());
  EXPECT_EQ(GradOf(x), 28);
}

TEST(BackwardTest, SharedGradientsAreNotAddedIntoEachOther) {
  // `top` passes one tensor to both sides. `late` adds to the gradient of the
  // left side while that is still waiting for the right side.
  const Tensor a = Variable({0}, {});
  const Tensor b = Variable({0}, {});
  const auto left =
      std::make_shared<FakeNode>("left", std::vector{GradEdge(a)});
  const auto right =
      std::make_shared<FakeNode>("right", std::vector{GradEdge(b)});
  const auto late =
      std::make_shared<FakeNode>("late", std::vector<Edge>{{left, 0}});
  const auto top = std::make_shared<FakeNode>(
      "top", std::vector<Edge>{{left, 0}, {right, 0}});
  const std::vector<Tensor> roots = {RootOf(top), RootOf(late)};
  ASSERT_THAT(Backward(roots, {}), IsOk());
  EXPECT_EQ(GradOf(a), 2);
  EXPECT_EQ(GradOf(b), 1);
}

TEST(BackwardTest, RootsOfWhichOneDependsOnTheOther) {
  const Tensor x = Variable({2}, {});
  const Tensor y = *Square(x);
  const Tensor z = *MulScalar(y, 10);
  const std::vector<Tensor> roots = {y, z, z};
  ASSERT_THAT(Backward(roots, {}), IsOk());
  EXPECT_EQ(GradOf(x), 4 + 2 * 40);
}

TEST(BackwardTest, ExplicitRootGradients) {
  const Tensor x = Variable({1, 2}, {2});
  const std::vector<Tensor> roots = {*MulScalar(x, 2), *autograd::Sum(x)};
  const Tensor gradient = Tensor::FromVector<double>({10, 20}, {2});
  const std::vector<Tensor> gradients = {gradient, Tensor()};
  ASSERT_THAT(Backward(roots, gradients), IsOk());
  EXPECT_THAT(Grad(x).ToVector<double>(), ElementsAre(21, 41));
  EXPECT_THAT(gradient.ToVector<double>(), ElementsAre(10, 20));
}

TEST(BackwardTest, LeafAsRoot) {
  const Tensor x = Variable({5}, {});
  ASSERT_THAT(Backward(x), IsOk());
  EXPECT_EQ(GradOf(x), 1);
}

TEST(BackwardTest, RetainedGraphRunsAgainAndAccumulates) {
  const Tensor x = Variable({3}, {});
  const Tensor y = *Mul(x, x);
  ASSERT_THAT(Backward(y, {.retain_graph = true}), IsOk());
  EXPECT_EQ(GradOf(x), 6);
  ASSERT_THAT(Backward(y), IsOk());
  EXPECT_EQ(GradOf(x), 12);
}

TEST(BackwardTest, ReleasedGraphFailsAndNamesTheOperation) {
  const Tensor x = Variable({3}, {});
  const Tensor y = *AddScalar(*Mul(x, x), 1);
  ASSERT_THAT(Backward(y), IsOk());
  EXPECT_THAT(Backward(y),
              StatusIs(kFailedPrecondition, HasSubstr("MulBackward")));
  // The second pass did not add to the gradient.
  EXPECT_EQ(GradOf(x), 6);
}

TEST(BackwardTest, GraphWithoutSavedTensorsRunsAgain) {
  const Tensor x = Variable({3}, {});
  const Tensor y = *MulScalar(x, 2);
  ASSERT_THAT(Backward(y), IsOk());
  ASSERT_THAT(Backward(y), IsOk());
  EXPECT_EQ(GradOf(x), 4);
}

TEST(BackwardTest, InPlaceWriteFailsAndNamesTheSavingOperation) {
  const Tensor x = Variable({3}, {});
  const Tensor y = *Exp(x);
  y.BumpVersion();
  EXPECT_THAT(Backward(y),
              StatusIs(kFailedPrecondition, HasSubstr("ExpBackward")));
}

TEST(BackwardTest, ErrorStopsThePass) {
  std::vector<std::string> log;
  const Tensor x = Variable({3}, {});
  const Tensor y = Variable({3}, {});
  const auto last =
      std::make_shared<FakeNode>("last", std::vector{GradEdge(x)}, &log);
  const auto bad = std::make_shared<FakeNode>(
      "BadBackward", std::vector<Edge>{{last, 0}}, 1,
      [](std::vector<Tensor>) -> absl::StatusOr<std::vector<Tensor>> {
        return absl::OutOfRangeError("bad");
      });
  const auto top = std::make_shared<FakeNode>(
      "top", std::vector<Edge>{{bad, 0}, GradEdge(y)}, &log);
  EXPECT_THAT(Backward(RootOf(top)),
              StatusIs(absl::StatusCode::kOutOfRange, "BadBackward: bad"));
  EXPECT_THAT(log, ElementsAre("top"));
  EXPECT_EQ(GradOf(x), -1);
  // It was added before the error. The graph can be used again.
  EXPECT_EQ(GradOf(y), 1);
  EXPECT_THAT(Backward(RootOf(last)), IsOk());
}

TEST(BackwardTest, UndefinedGradientsDoNotRunNodes) {
  std::vector<std::string> log;
  const Tensor x = Variable({3}, {});
  const Tensor y = Variable({3}, {});
  const auto quiet =
      std::make_shared<FakeNode>("quiet", std::vector{GradEdge(x)}, &log);
  const auto always =
      std::make_shared<FakeNode>("always", std::vector<Edge>{}, &log);
  always->set_runs_without_gradients(true);
  const auto top = std::make_shared<FakeNode>(
      "top", std::vector<Edge>{{quiet, 0}, {always, 0}, GradEdge(y)}, 1,
      [](std::vector<Tensor> grads) {
        return std::vector<Tensor>{Tensor(), Tensor(), grads[0]};
      });
  ASSERT_THAT(Backward(RootOf(top)), IsOk());
  EXPECT_THAT(log, ElementsAre("always"));
  EXPECT_FALSE(Grad(x).defined());
  EXPECT_EQ(GradOf(y), 1);
  EXPECT_EQ(quiet->num_releases(), 1);
}

TEST(BackwardTest, PassIsNotRecorded) {
  const Tensor x = Variable({3}, {});
  bool enabled = true;
  ASSERT_THAT(RegisterHook(x,
                           [&](const Tensor& g) -> absl::StatusOr<Tensor> {
                             enabled = GradEnabled();
                             return g;
                           }),
              IsOk());
  ASSERT_THAT(Backward(*Square(x)), IsOk());
  EXPECT_FALSE(enabled);
  EXPECT_TRUE(GradEnabled());
}

TEST(BackwardTest, TensorHookGetsTheCompleteGradientOfAResult) {
  const Tensor x = Variable({3}, {});
  const Tensor y = *MulScalar(x, 2);
  double seen = 0;
  ASSERT_THAT(RegisterHook(y,
                           [&](const Tensor& g) -> absl::StatusOr<Tensor> {
                             seen = *g.item<double>();
                             return Tensor::Scalar(100, {DType::kF64});
                           }),
              IsOk());
  ASSERT_THAT(Backward(*Add(y, *MulScalar(y, 4))), IsOk());
  EXPECT_EQ(seen, 5);
  EXPECT_EQ(GradOf(x), 200);
}

TEST(BackwardTest, NestedPasses) {
  const Tensor x = Variable({3}, {});
  const Tensor inner = Variable({4}, {});
  ASSERT_THAT(RegisterHook(x,
                           [&](const Tensor&) -> absl::StatusOr<Tensor> {
                             EnableGradGuard enable;
                             absl::Status status = Backward(*Square(inner));
                             if (!status.ok()) return status;
                             return Grad(inner);
                           }),
              IsOk());
  ASSERT_THAT(Backward(*MulScalar(x, 2)), IsOk());
  EXPECT_EQ(GradOf(x), 8);
}

TEST(BackwardTest, RejectsInvalidRoots) {
  const Tensor x = Variable({1, 2}, {2});
  EXPECT_THAT(Backward(Tensor()), StatusIs(kInvalidArgument));
  EXPECT_THAT(Backward(Tensor::Zeros({})), StatusIs(kInvalidArgument));
  EXPECT_THAT(Backward(*Square(x)),
              StatusIs(kInvalidArgument, HasSubstr("exactly one element")));
  EXPECT_THAT(Backward(std::vector<Tensor>(), {}), StatusIs(kInvalidArgument));
  const Tensor y = *Square(x);
  const Tensor short_gradient = Tensor::Ones({1}, {DType::kF64});
  EXPECT_THAT(Backward({&y, 1}, {&short_gradient, 1}),
              StatusIs(kInvalidArgument));
  const Tensor other_dtype = Tensor::Ones({2});
  EXPECT_THAT(Backward({&y, 1}, {&other_dtype, 1}), StatusIs(kInvalidArgument));
  EXPECT_THAT(Backward({&y, 1}, std::vector<Tensor>(2)),
              StatusIs(kInvalidArgument));
}

TEST(BackwardTest, DoesNotRecordUnderNoGradOrFromConstants) {
  const Tensor x = Variable({1}, {});
  EXPECT_FALSE(RequiresGrad(*Square(Detach(x))));
  NoGradGuard no_grad;
  EXPECT_FALSE(RequiresGrad(*Square(x)));
}

TEST(BackwardTest, VeryDeepGraphs) {
  constexpr int kDepth = 100'000;
  const Tensor x = Variable({1}, {});
  Tensor y = x;
  for (int i = 0; i < kDepth; ++i) y = *AddScalar(y, 1);
  ASSERT_THAT(Backward(y), IsOk());
  EXPECT_EQ(GradOf(x), 1);
  y = Tensor();
}

TEST(GradTest, ReturnsGradientsAndDoesNotChangeLeaves) {
  const Tensor x = Variable({3}, {});
  const Tensor w = Variable({4}, {});
  const Tensor y = *Mul(x, w);
  const Tensor z = *Square(y);
  const std::vector<Tensor> inputs = {w, y, x, y};
  const auto gradients = Grad({&z, 1}, inputs);
  ASSERT_THAT(gradients, IsOk());
  std::vector<double> values;
  for (const Tensor& g : *gradients) values.push_back(*g.item<double>());
  EXPECT_THAT(values, ElementsAre(72, 24, 96, 24));
  EXPECT_FALSE(Grad(x).defined());
  EXPECT_FALSE(Grad(w).defined());
}

TEST(GradTest, RunsOnlyNodesThatLeadToAnInput) {
  std::vector<std::string> log;
  const Tensor x = Variable({3}, {});
  const auto below =
      std::make_shared<FakeNode>("below", std::vector{GradEdge(x)}, &log);
  const Tensor wanted = RootOf(below);
  const auto aside =
      std::make_shared<FakeNode>("aside", std::vector{GradEdge(x)}, &log);
  const auto top = std::make_shared<FakeNode>(
      "top", std::vector<Edge>{GradEdge(wanted), {aside, 0}}, &log);
  const Tensor root = RootOf(top);
  ASSERT_THAT(Grad({&root, 1}, {&wanted, 1}), IsOk());
  EXPECT_THAT(log, ElementsAre("top"));
  EXPECT_EQ(below->num_releases(), 0);
}

TEST(GradTest, HooksOfALeafRunOnce) {
  const Tensor x = Variable({3}, {});
  int num_calls = 0;
  ASSERT_THAT(RegisterHook(x,
                           [&](const Tensor&) -> absl::StatusOr<Tensor> {
                             ++num_calls;
                             return Tensor::Scalar(7, {DType::kF64});
                           }),
              IsOk());
  const Tensor y = *Square(x);
  const std::vector<Tensor> inputs = {x, x};
  const auto gradients = Grad({&y, 1}, inputs);
  ASSERT_THAT(gradients, IsOk());
  EXPECT_EQ(*(*gradients)[0].item<double>(), 7);
  EXPECT_EQ(*(*gradients)[1].item<double>(), 7);
  EXPECT_EQ(num_calls, 1);
}

TEST(GradTest, UnusedInputs) {
  const Tensor x = Variable({3}, {});
  const Tensor unused = Variable({4}, {});
  const Tensor y = *Square(x);
  const std::vector<Tensor> inputs = {unused, x};
  EXPECT_THAT(
      Grad({&y, 1}, inputs, {.output_gradients = {}, .retain_graph = true}),
      StatusIs(kInvalidArgument, HasSubstr("input 0")));
  const auto gradients =
      Grad({&y, 1}, inputs, {.output_gradients = {}, .allow_unused = true});
  ASSERT_THAT(gradients, IsOk());
  EXPECT_FALSE((*gradients)[0].defined());
  EXPECT_EQ(*(*gradients)[1].item<double>(), 6);
  const Tensor constant = Tensor::Zeros({});
  EXPECT_THAT(Grad({&y, 1}, {&constant, 1}), StatusIs(kInvalidArgument));
}

}  // namespace
}  // namespace hawser::autograd
