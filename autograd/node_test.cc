#include "autograd/node.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "async/testing/status_matchers.h"
#include "autograd/fake_node.h"
#include "autograd/variable.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace hawser::autograd {
namespace {

using async::IsOk;
using async::StatusIs;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<Tensor> Scalars(std::initializer_list<double> values) {
  std::vector<Tensor> tensors;
  for (double value : values) tensors.push_back(Tensor::Scalar(value));
  return tensors;
}

TEST(NodeTest, SequenceNumbersGrowAndAccumulatorsComeFirst) {
  const auto a = std::make_shared<FakeNode>("a", std::vector<Edge>{});
  const auto b = std::make_shared<FakeNode>("b", std::vector<Edge>{});
  const Tensor leaf = Tensor::Scalar(1);
  ASSERT_THAT(SetRequiresGrad(leaf), IsOk());
  EXPECT_LT(a->sequence_number(), b->sequence_number());
  EXPECT_GT(GradEdge(leaf).node->sequence_number(), b->sequence_number());
}

TEST(NodeTest, ErrorNamesTheNodeAndKeepsItsPayload) {
  FakeNode node("TestBackward", {}, 1, [](std::vector<Tensor>) {
    absl::Status error = absl::AbortedError("stop");
    error.SetPayload("type", absl::Cord("detail"));
    return error;
  });
  const auto result = node.Run(Scalars({1}));
  EXPECT_THAT(result,
              StatusIs(absl::StatusCode::kAborted, "TestBackward: stop"));
  EXPECT_EQ(result.status().GetPayload("type"), absl::Cord("detail"));
}

TEST(NodeTest, WrongNumberOfResultsIsAnError) {
  const auto next = std::make_shared<FakeNode>("next", std::vector<Edge>{});
  FakeNode node("TestBackward", {{next, 0}}, 1,
                [](std::vector<Tensor>) { return std::vector<Tensor>(); });
  EXPECT_THAT(node.Run(Scalars({1})),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("TestBackward")));
}

TEST(NodeTest, HooksRunInOrderAndReplaceGradients) {
  const auto next = std::make_shared<FakeNode>("next", std::vector<Edge>{});
  FakeNode node("node", {{next, 0}});
  const auto append = [](int digit) {
    return [digit](const Tensor& g) -> absl::StatusOr<Tensor> {
      return Tensor::Scalar(10 * *g.item<double>() + digit);
    };
  };
  node.RegisterGradientHook(0, append(2));
  HookHandle removed = node.RegisterGradientHook(0, append(9));
  node.RegisterGradientHook(0, append(3));
  removed.Remove();
  removed.Remove();
  node.RegisterPreHook([](std::vector<Tensor>& grads) {
    grads[0] = Tensor::Scalar(10 * *grads[0].item<double>() + 4);
    return absl::OkStatus();
  });
  node.RegisterPostHook([](std::vector<Tensor>& grads) {
    grads[0] = Tensor::Scalar(10 * *grads[0].item<double>() + 5);
    return absl::OkStatus();
  });
  std::vector<Tensor> gradients = Scalars({1});
  ASSERT_THAT(node.RunPreHooks(gradients), IsOk());
  const auto result = node.Run(std::move(gradients));
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(*(*result)[0].item<double>(), 12345);
}

TEST(NodeTest, HookThatReturnsUndefinedKeepsTheGradient) {
  FakeNode node("node", {});
  int num_calls = 0;
  node.RegisterGradientHook(0, [&](const Tensor&) -> absl::StatusOr<Tensor> {
    ++num_calls;
    return Tensor();
  });
  std::vector<Tensor> gradients = Scalars({1});
  ASSERT_THAT(node.RunPreHooks(gradients), IsOk());
  EXPECT_EQ(*gradients[0].item<double>(), 1);
  // It does not receive an undefined gradient either.
  gradients[0] = Tensor();
  ASSERT_THAT(node.RunPreHooks(gradients), IsOk());
  EXPECT_EQ(num_calls, 1);
}

TEST(NodeTest, HookErrorNamesTheNode) {
  FakeNode node("TestBackward", {});
  node.RegisterPreHook(
      [](std::vector<Tensor>&) { return absl::AbortedError("no"); });
  std::vector<Tensor> gradients = Scalars({1});
  EXPECT_THAT(node.RunPreHooks(gradients),
              StatusIs(absl::StatusCode::kAborted, "TestBackward: no"));
}

TEST(NodeTest, HookCannotChangeTheNumberOfGradients) {
  FakeNode node("TestBackward", {});
  node.RegisterPreHook([](std::vector<Tensor>& grads) {
    grads.clear();
    return absl::OkStatus();
  });
  std::vector<Tensor> gradients = Scalars({1});
  EXPECT_THAT(node.RunPreHooks(gradients),
              StatusIs(absl::StatusCode::kInternal));
}

// Wrong replacements of a gradient f32[2, 3], all of which could be added to it
// or written into it.
std::vector<Tensor> WrongReplacements() {
  return {Tensor::Ones({3}), Tensor::Ones({}), Tensor::Ones({2, 1}),
          Tensor::Ones({2, 3}, {tensor::DType::kF64})};
}

TEST(NodeTest, HookCannotChangeShapeDtypeOrDeviceOfAGradient) {
  const auto wrong = [](const char* hook) {
    return StatusIs(
        absl::StatusCode::kInvalidArgument,
        AllOf(HasSubstr("TestBackward"), HasSubstr(hook),
              HasSubstr("f32[2, 3]"), HasSubstr("same shape, dtype")));
  };
  for (const Tensor& replacement : WrongReplacements()) {
    const auto replace = [&](std::vector<Tensor>& gradients) {
      gradients[0] = replacement;
      return absl::OkStatus();
    };
    std::vector<Tensor> gradients = {Tensor::Ones({2, 3})};

    FakeNode gradient_hook("TestBackward", {});
    gradient_hook.RegisterGradientHook(
        0,
        [&](const Tensor&) -> absl::StatusOr<Tensor> { return replacement; });
    EXPECT_THAT(gradient_hook.RunPreHooks(gradients), wrong("gradient hook"));

    FakeNode pre_hook("TestBackward", {});
    pre_hook.RegisterPreHook(replace);
    EXPECT_THAT(pre_hook.RunPreHooks(gradients), wrong("pre hook"));

    FakeNode post_hook(
        "TestBackward",
        {{std::make_shared<FakeNode>("next", std::vector<Edge>{}), 0}});
    post_hook.RegisterPostHook(replace);
    EXPECT_THAT(post_hook.Run({Tensor::Ones({2, 3})}), wrong("post hook"));
  }
}

TEST(NodeTest, HandleOutlivesItsNode) {
  HookHandle handle;
  {
    FakeNode node("node", {});
    handle = node.RegisterPreHook(
        [](std::vector<Tensor>&) { return absl::OkStatus(); });
  }
  handle.Remove();
}

// A chain in which each node also keeps a tensor produced by the next one.
TEST(NodeTest, DeepGraphsAreReleasedWithoutRecursion) {
  constexpr int kDepth = 100'000;
  const auto end = std::make_shared<FakeNode>("end", std::vector<Edge>{});
  Tensor tensor = Tensor::Scalar(1);
  SetHistory(tensor, end, 0);
  for (int i = 0; i < kDepth; ++i) {
    const Tensor next = Tensor::Scalar(1);
    SetHistory(next,
               std::make_shared<FakeNode>(
                   "link", std::vector<Edge>{GradEdge(tensor)}, 1,
                   [kept = tensor](std::vector<Tensor>) {
                     return std::vector<Tensor>{kept};
                   }),
               0);
    tensor = next;
  }
  EXPECT_GT(end.use_count(), 1);
  tensor = Tensor();
  EXPECT_EQ(end.use_count(), 1);
}

}  // namespace
}  // namespace hawser::autograd
