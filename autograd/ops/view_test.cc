#include "autograd/ops/view.h"

#include <array>
#include <functional>
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
using testing::ElementsAre;

const std::array<int, 3> kRotation = {2, 0, 1};
const std::array<int, 3> kNegative = {-1, 0, -2};

std::vector<std::function<absl::StatusOr<Tensor>(const Tensor&)>> Views() {
  return {
      [](const Tensor& x) {
        return Reshape(x, {4, -1});
      },
      [](const Tensor& x) {
        return Reshape(x, {2, 3, 4});
      },
      [](const Tensor& x) { return Transpose(x, 0, 2); },
      [](const Tensor& x) { return Transpose(x, -1, -2); },
      [](const Tensor& x) { return Permute(x, kRotation); },
      [](const Tensor& x) { return Permute(x, kNegative); },
      [](const Tensor& x) { return Slice(x, 2, 1, 4); },
      [](const Tensor& x) { return Slice(x, -1, 0, 4, 3); },
      [](const Tensor& x) { return Slice(x, 1, 2, 2); },
      [](const Tensor& x) { return Narrow(x, 1, 1, 2); },
      [](const Tensor& x) { return Select(x, 1, 2); },
      [](const Tensor& x) { return Select(x, 0, -1); },
      [](const Tensor& x) {
        return Expand(x, {5, 2, 3, 4});
      },
      [](const Tensor& x) { return Unsqueeze(x, -1); },
      [](const Tensor& x) { return Unsqueeze(x, 0); },
      [](const Tensor& x) -> absl::StatusOr<Tensor> {
        const auto row = Narrow(x, 1, 1, 1);
        return Squeeze(*row, 1);
      },
      [](const Tensor& x) -> absl::StatusOr<Tensor> {
        const auto row = Narrow(x, 1, 1, 1);
        return Squeeze(*row);
      },
      [](const Tensor& x) -> absl::StatusOr<Tensor> {
        const auto row = Narrow(x, 1, 1, 1);
        return Expand(*row, {2, 7, 4});
      },
      [](const Tensor& x) -> absl::StatusOr<Tensor> {
        const auto turned = Transpose(x, 0, 1);
        return Reshape(*turned, {-1});
      },
  };
}

TEST(ViewTest, GradientsMatchFiniteDifferences) {
  int index = 0;
  for (const auto& view : Views()) {
    EXPECT_THAT(
        CheckGradients(
            [&](std::span<const Tensor> inputs) { return view(inputs[0]); },
            {RandomVariable({2, 3, 4})}),
        IsOk())
        << "view " << index;
    ++index;
  }
}

TEST(ViewTest, GradientsReturnToTheSelectedElements) {
  const Tensor x = Variable({1, 2, 3, 4, 5, 6}, {2, 3});
  const auto expect = [&](const absl::StatusOr<Tensor>& y,
                          const std::vector<double>& dout, auto matcher) {
    ASSERT_THAT(y, IsOk());
    const auto gradients = GradientsOf(*y, dout, {x});
    ASSERT_THAT(gradients, IsOk());
    EXPECT_THAT((*gradients)[0], matcher);
  };
  expect(Reshape(x, {6}), {1, 2, 3, 4, 5, 6}, ElementsAre(1, 2, 3, 4, 5, 6));
  expect(Transpose(x, 0, 1), {1, 2, 3, 4, 5, 6}, ElementsAre(1, 3, 5, 2, 4, 6));
  expect(Slice(x, 1, 0, 3, 2), {1, 2, 3, 4}, ElementsAre(1, 0, 2, 3, 0, 4));
  expect(Narrow(x, 1, 1, 2), {1, 2, 3, 4}, ElementsAre(0, 1, 2, 0, 3, 4));
  expect(Select(x, 0, 1), {1, 2, 3}, ElementsAre(0, 0, 0, 1, 2, 3));
  expect(Expand(x, {2, 2, 3}), {1, 2, 3, 4, 5, 6, 10, 20, 30, 40, 50, 60},
         ElementsAre(11, 22, 33, 44, 55, 66));
}

TEST(ViewTest, SharesMemory) {
  const Tensor x = RandomVariable({2, 3});
  EXPECT_EQ(Reshape(x, {3, 2})->storage(), x.storage());
  EXPECT_EQ(Transpose(x, 0, 1)->storage(), x.storage());
}

TEST(ViewTest, SameShapeIsANewTensor) {
  const Tensor x = RandomVariable({2, 3});
  const auto y = Reshape(x, {2, 3});
  ASSERT_THAT(y, IsOk());
  EXPECT_TRUE(IsLeaf(x));
  EXPECT_FALSE(IsLeaf(*y));
}

TEST(ViewTest, ReturnsErrorsOfTheMethods) {
  const Tensor x = RandomVariable({2, 3});
  EXPECT_THAT(Reshape(x, {4}), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Select(x, 0, 2), StatusIs(absl::StatusCode::kOutOfRange));
}

}  // namespace
}  // namespace hawser::autograd
