#include "autograd/accumulate_grad.h"

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "async/testing/status_matchers.h"
#include "autograd/gradcheck.h"
#include "autograd/variable.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::autograd {
namespace {

using async::IsOk;
using async::StatusIs;
using tensor::DType;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

absl::Status Accumulate(const Tensor& leaf, Tensor gradient) {
  std::vector<Tensor> gradients;
  gradients.push_back(std::move(gradient));
  return GradEdge(leaf).node->Run(std::move(gradients)).status();
}

Tensor F64(const std::vector<double>& values) {
  return Tensor::FromVector(values, {static_cast<int64_t>(values.size())});
}

TEST(AccumulateGradTest, TakesOverAnUnsharedGradient) {
  const Tensor leaf = Variable({0, 0}, {2});
  Tensor gradient = F64({1, 2});
  const void* memory = gradient.raw_data();
  ASSERT_THAT(Accumulate(leaf, std::move(gradient)), IsOk());
  EXPECT_EQ(Grad(leaf).raw_data(), memory);
  EXPECT_THAT(Grad(leaf).ToVector<double>(), ElementsAre(1, 2));
}

TEST(AccumulateGradTest, CopiesASharedGradient) {
  const Tensor leaf = Variable({0, 0}, {2});
  const Tensor gradient = F64({1, 2});
  ASSERT_THAT(Accumulate(leaf, gradient), IsOk());
  EXPECT_NE(Grad(leaf).raw_data(), gradient.raw_data());
  ASSERT_THAT(Accumulate(leaf, gradient), IsOk());
  EXPECT_THAT(Grad(leaf).ToVector<double>(), ElementsAre(2, 4));
  EXPECT_THAT(gradient.ToVector<double>(), ElementsAre(1, 2));
}

TEST(AccumulateGradTest, CopiesAViewOfSharedMemory) {
  const Tensor leaf = Variable({0, 0}, {2});
  const Tensor whole = F64({1, 2, 3, 4});
  ASSERT_THAT(Accumulate(leaf, *whole.Narrow(0, 1, 2)), IsOk());
  ASSERT_THAT(Accumulate(leaf, F64({10, 10})), IsOk());
  EXPECT_THAT(Grad(leaf).ToVector<double>(), ElementsAre(12, 13));
  EXPECT_THAT(whole.ToVector<double>(), ElementsAre(1, 2, 3, 4));
}

TEST(AccumulateGradTest, MakesABroadcastGradientDense) {
  const Tensor leaf = Variable({0, 0}, {2});
  ASSERT_THAT(Accumulate(leaf, *F64({3}).Expand({2})), IsOk());
  EXPECT_TRUE(Grad(leaf).is_contiguous());
  ASSERT_THAT(Accumulate(leaf, F64({1, 2})), IsOk());
  EXPECT_THAT(Grad(leaf).ToVector<double>(), ElementsAre(4, 5));
}

TEST(AccumulateGradTest, AddsInPlaceToAGradientThatWasSet) {
  const Tensor leaf = Variable({0, 0}, {2});
  const Tensor bucket = F64({0, 0, 0, 0});
  ASSERT_THAT(SetGrad(leaf, *bucket.Narrow(0, 1, 2)), IsOk());
  ASSERT_THAT(Accumulate(leaf, F64({1, 2})), IsOk());
  EXPECT_THAT(bucket.ToVector<double>(), ElementsAre(0, 1, 2, 0));
}

TEST(AccumulateGradTest, GradientThatOverlapsTheSumIsCopiedFirst) {
  const Tensor leaf = Variable({0, 0}, {2});
  const Tensor bucket = F64({1, 2, 3});
  ASSERT_THAT(SetGrad(leaf, *bucket.Narrow(0, 1, 2)), IsOk());
  ASSERT_THAT(Accumulate(leaf, *bucket.Narrow(0, 0, 2)), IsOk());
  EXPECT_THAT(Grad(leaf).ToVector<double>(), ElementsAre(3, 5));
}

TEST(AccumulateGradTest, AddsTheGradientToItself) {
  const Tensor leaf = Variable({0, 0}, {2});
  ASSERT_THAT(Accumulate(leaf, F64({1, 2})), IsOk());
  ASSERT_THAT(Accumulate(leaf, Grad(leaf)), IsOk());
  EXPECT_THAT(Grad(leaf).ToVector<double>(), ElementsAre(2, 4));
}

TEST(AccumulateGradTest, UndefinedGradientHasNoEffect) {
  const Tensor leaf = Variable({0, 0}, {2});
  int num_calls = 0;
  ASSERT_THAT(RegisterPostAccumulateHook(leaf,
                                         [&](const Tensor&) {
                                           ++num_calls;
                                           return absl::OkStatus();
                                         }),
              IsOk());
  ASSERT_THAT(Accumulate(leaf, Tensor()), IsOk());
  EXPECT_FALSE(Grad(leaf).defined());
  EXPECT_EQ(num_calls, 0);
}

TEST(AccumulateGradTest, RejectsAGradientThatDoesNotFit) {
  const Tensor leaf = Variable({0, 0}, {2});
  EXPECT_THAT(Accumulate(leaf, F64({1, 2, 3})),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Accumulate(leaf, Tensor::Ones({2}, {DType::kF32})),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_FALSE(Grad(leaf).defined());
}

TEST(AccumulateGradTest, HooksRunBeforeAndAfterInOrder) {
  const Tensor leaf = Variable({0}, {1});
  std::string log;
  const auto scale = [&](char mark, double factor) {
    return [&log, mark, factor](const Tensor& g) -> absl::StatusOr<Tensor> {
      log += mark;
      return F64({*g.item<double>() * factor});
    };
  };
  const auto post = [&](char mark) {
    return [&log, mark](const Tensor& variable) {
      log += mark;
      log += std::to_string(static_cast<int>(*Grad(variable).item<double>()));
      return absl::OkStatus();
    };
  };
  ASSERT_THAT(RegisterHook(leaf, scale('a', 2)), IsOk());
  auto removed = RegisterHook(leaf, scale('x', 100));
  ASSERT_THAT(RegisterHook(leaf, scale('b', 3)), IsOk());
  ASSERT_THAT(RegisterPostAccumulateHook(leaf, post('p')), IsOk());
  ASSERT_THAT(RegisterPostAccumulateHook(leaf, post('q')), IsOk());
  removed->Remove();
  ASSERT_THAT(Accumulate(leaf, F64({1})), IsOk());
  EXPECT_EQ(log, "abp6q6");
}

TEST(AccumulateGradTest, HookErrorLeavesTheGradientUnchanged) {
  const Tensor leaf = Variable({0}, {1});
  ASSERT_THAT(RegisterHook(leaf,
                           [](const Tensor&) -> absl::StatusOr<Tensor> {
                             return absl::AbortedError("no");
                           }),
              IsOk());
  EXPECT_THAT(Accumulate(leaf, F64({1})),
              StatusIs(absl::StatusCode::kAborted, "AccumulateGrad: no"));
  EXPECT_FALSE(Grad(leaf).defined());
}

TEST(AccumulateGradTest, HookCannotChangeShapeOrDtypeOfAGradient) {
  const Tensor leaf = Variable({0, 0}, {2});
  Tensor replacement;
  ASSERT_THAT(RegisterHook(leaf,
                           [&](const Tensor&) -> absl::StatusOr<Tensor> {
                             return replacement;
                           }),
              IsOk());
  for (const Tensor& wrong : {F64({1}), Tensor::Ones({2}, {DType::kF32})}) {
    replacement = wrong;
    EXPECT_THAT(Accumulate(leaf, F64({1, 2})),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("a gradient hook returned"),
                               HasSubstr("f64[2]"))));
  }
  EXPECT_FALSE(Grad(leaf).defined());
}

TEST(AccumulateGradTest, IsThreadSafe) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 200;
  const Tensor leaf = Variable({0, 0}, {2});
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < kRounds; ++j) {
        EXPECT_THAT(Accumulate(leaf, F64({1, 2})), IsOk());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(Grad(leaf).ToVector<double>(),
              ElementsAre(kThreads * kRounds, 2 * kThreads * kRounds));
}

}  // namespace
}  // namespace hawser::autograd
