#include "autograd/ops/in_place.h"

#include <vector>

#include "async/testing/status_matchers.h"
#include "autograd/backward.h"
#include "autograd/grad_mode.h"
#include "autograd/gradcheck.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/view.h"
#include "autograd/variable.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::autograd {
namespace {

using async::IsOk;
using async::StatusIs;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr auto kFailedPrecondition = absl::StatusCode::kFailedPrecondition;

// The operations start from a result whose memory is not shared.
absl::StatusOr<Tensor> Start(const Tensor& x) { return MulScalar(x, 3); }

using Write = std::function<absl::Status(Tensor& a, const Tensor& b)>;

TEST(InPlaceTest, GradientsMatchFiniteDifferences) {
  const std::vector<Write> writes = {
      [](Tensor& a, const Tensor& b) { return AddInPlace(a, b, -0.5); },
      [](Tensor& a, const Tensor& b) { return MulInPlace(a, b); },
      [](Tensor& a, const Tensor&) { return MulInPlace(a, a); },
      [](Tensor& a, const Tensor&) { return AddInPlace(a, a, 2); },
      [](Tensor& a, const Tensor&) { return MulScalarInPlace(a, -4); },
      [](Tensor& a, const Tensor&) { return FillInPlace(a, 2); },
      [](Tensor& a, const Tensor& b) { return CopyInto(a, b); },
  };
  for (size_t i = 0; i < writes.size(); ++i) {
    EXPECT_THAT(
        CheckGradients(
            [&](std::span<const Tensor> inputs) -> absl::StatusOr<Tensor> {
              auto a = Start(inputs[0]);
              if (!a.ok()) return a;
              if (auto s = writes[i](*a, inputs[1]); !s.ok()) return s;
              // Operations after the write must not use the value before it.
              return Mul(*a, inputs[0]);
            },
            {RandomVariable({2, 3}, {.seed = 1}),
             RandomVariable({3}, {.seed = 2})}),
        IsOk())
        << i;
  }
}

TEST(InPlaceTest, GradientsMatchFormulas) {
  const Tensor x = Variable({1, 2}, {2});
  const Tensor y = Variable({5, 7}, {2});
  Tensor a = *Start(x);
  ASSERT_THAT(MulInPlace(a, y), IsOk());
  ASSERT_THAT(AddInPlace(a, y, 2), IsOk());
  EXPECT_THAT(a.ToVector<double>(), ElementsAre(25, 56));
  const auto gradients = GradientsOf(a, {1, 10}, {x, y});
  ASSERT_THAT(gradients, IsOk());
  EXPECT_THAT((*gradients)[0], ElementsAre(15, 210));
  EXPECT_THAT((*gradients)[1], ElementsAre(5, 80));
}

TEST(InPlaceTest, ConstantBecomesAResult) {
  const Tensor x = Variable({1, 2}, {2});
  Tensor sum = Tensor::Zeros({2}, {tensor::DType::kF64});
  ASSERT_THAT(AddInPlace(sum, x), IsOk());
  ASSERT_THAT(AddInPlace(sum, x), IsOk());
  EXPECT_TRUE(RequiresGrad(sum));
  const auto gradients = GradientsOf(sum, {1, 10}, {x});
  ASSERT_THAT(gradients, IsOk());
  EXPECT_THAT((*gradients)[0], ElementsAre(2, 20));
}

TEST(InPlaceTest, LeafCannotBeWrittenWhileRecording) {
  Tensor x = Variable({1, 2}, {2});
  const Tensor one = Tensor::Ones({2}, {tensor::DType::kF64});
  EXPECT_THAT(AddInPlace(x, one),
              StatusIs(kFailedPrecondition, HasSubstr("AddInPlace")));
  EXPECT_THAT(MulInPlace(x, one),
              StatusIs(kFailedPrecondition, HasSubstr("MulInPlace")));
  EXPECT_THAT(MulScalarInPlace(x, 2), StatusIs(kFailedPrecondition));
  EXPECT_THAT(FillInPlace(x, 2), StatusIs(kFailedPrecondition));
  EXPECT_THAT(CopyInto(x, one), StatusIs(kFailedPrecondition));
  EXPECT_THAT(x.ToVector<double>(), ElementsAre(1, 2));
  NoGradGuard no_grad;
  EXPECT_THAT(AddInPlace(x, one), IsOk());
  EXPECT_THAT(x.ToVector<double>(), ElementsAre(2, 3));
  EXPECT_TRUE(IsLeaf(x));
}

TEST(InPlaceTest, SharedMemoryCannotBeWrittenWhileRecording) {
  const Tensor x = Variable({1, 2}, {2});
  Tensor a = *Start(x);
  Tensor view = *Reshape(a, {2, 1});
  EXPECT_THAT(MulScalarInPlace(a, 2), StatusIs(kFailedPrecondition));
  EXPECT_THAT(MulScalarInPlace(view, 2), StatusIs(kFailedPrecondition));
  view = Tensor();
  EXPECT_THAT(MulScalarInPlace(a, 2), IsOk());
}

TEST(InPlaceTest, OverwritingASavedTensorFailsAndNamesTheOperation) {
  const Tensor x = Variable({1, 2}, {2});
  Tensor a = *Start(x);
  const Tensor y = *Mul(a, x);
  ASSERT_THAT(MulScalarInPlace(a, 2), IsOk());
  EXPECT_THAT(GradientsOf(y, {1, 1}, {x}),
              StatusIs(kFailedPrecondition, HasSubstr("MulBackward")));
}

TEST(InPlaceTest, ErrorsDoNotChangeTheHistory) {
  const Tensor x = Variable({1, 2}, {2});
  Tensor a = *Start(x);
  EXPECT_THAT(AddInPlace(a, Variable({1, 2, 3}, {3})),
              StatusIs(absl::StatusCode::kInvalidArgument));
  const auto gradients = GradientsOf(a, {1, 1}, {x});
  ASSERT_THAT(gradients, IsOk());
  EXPECT_THAT((*gradients)[0], ElementsAre(3, 3));
}

}  // namespace
}  // namespace hawser::autograd
