#include "nn/loss.h"

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/testing/status_matchers.h"
#include "autograd/backward.h"
#include "autograd/variable.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "nn/golden_cases.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace hawser::nn {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::nlohmann::ordered_json;
using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::Lt;
using ::testing::Pointwise;

using Loss = std::function<absl::StatusOr<Tensor>(
    const Tensor& x, const Tensor& y, Reduction reduction)>;

// Compares losses with results of PyTorch 1.13.1.
class LossGoldenTest : public testing::Test {
 protected:
  LossGoldenTest() : golden_(ReadGolden()["losses"]) {}

  void Check(const std::string& name, const Loss& loss,
             double tolerance = 1e-11) {
    SCOPED_TRACE(name);
    const ordered_json& golden = golden_[name];
    ASSERT_FALSE(golden.is_null());
    const std::pair<const char*, Reduction> reductions[] = {
        {"mean", Reduction::kMean},
        {"sum", Reduction::kSum},
        {"none", Reduction::kNone}};
    for (const auto& [key, reduction] : reductions) {
      SCOPED_TRACE(key);
      const Tensor x = GoldenTensor(golden["input"]);
      ASSERT_THAT(autograd::SetRequiresGrad(x), IsOk());
      const absl::StatusOr<Tensor> value =
          loss(x, GoldenTensor(golden["target"]), reduction);
      ASSERT_THAT(value, IsOk());
      ExpectTensorNear("loss", *value, GoldenTensor(golden[key]["output"]));
      const std::vector<Tensor> roots = {*value};
      const std::vector<Tensor> gradients = {
          GoldenTensor(golden[key]["output_gradient"])};
      ASSERT_THAT(autograd::Backward(roots, gradients), IsOk());
      ExpectTensorNear("gradient", autograd::Grad(x),
                       GoldenTensor(golden[key]["gradient"]), tolerance);
    }
  }

  void CheckClasses(const std::string& name, ClassLossOptions options,
                    absl::StatusOr<Tensor> (*loss)(const Tensor&, const Tensor&,
                                                   const ClassLossOptions&)) {
    Check(name, [=](const Tensor& x, const Tensor& y, Reduction reduction) {
      ClassLossOptions with_reduction = options;
      with_reduction.reduction = reduction;
      return loss(x, y, with_reduction);
    });
  }

  const ordered_json golden_;
};

TEST_F(LossGoldenTest, ClassLosses) {
  const Tensor weights = Tensor::FromVector<double>({0.5, 1, 2, 0.25, 3}, {5});
  CheckClasses("cross_entropy", {}, CrossEntropyLoss);
  CheckClasses("cross_entropy_smoothing", {.label_smoothing = 0.1},
               CrossEntropyLoss);
  CheckClasses("cross_entropy_ignored", {.ignored_label = -1},
               CrossEntropyLoss);
  CheckClasses(
      "cross_entropy_everything",
      {.ignored_label = -1, .class_weights = weights, .label_smoothing = 0.3},
      CrossEntropyLoss);
  CheckClasses("cross_entropy_pixels", {.label_smoothing = 0.2},
               CrossEntropyLoss);
  CheckClasses("nll", {}, NllLoss);
  CheckClasses("nll_weighted", {.ignored_label = -1, .class_weights = weights},
               NllLoss);
}

TEST_F(LossGoldenTest, ElementLosses) {
  Check("mse", MseLoss);
  Check("l1", L1Loss);
  Check("smooth_l1", [](const Tensor& x, const Tensor& y, Reduction r) {
    return SmoothL1Loss(x, y, 0.7, r);
  });
  Check("huber", [](const Tensor& x, const Tensor& y, Reduction r) {
    return HuberLoss(x, y, 0.6, r);
  });
  Check("kl_div", KlDivLoss);
}

TEST_F(LossGoldenTest, BinaryCrossEntropy) {
  Check("bce", BceLoss);
  // Less exact, because PyTorch divides by 1e-12 rounded to f32 here.
  Check("bce_corners", BceLoss, 1e-8);
  Check("bce_with_logits", [](const Tensor& x, const Tensor& y, Reduction r) {
    return BceWithLogitsLoss(x, y, r);
  });
  const Tensor weight = Tensor::FromVector<double>({0.5, 2, 3}, {3});
  Check("bce_with_logits_weighted",
        [&](const Tensor& x, const Tensor& y, Reduction r) {
          return BceWithLogitsLoss(x, y, r, weight);
        });
}

TEST(LossTest, ErrorsNameInvalidArguments) {
  const Tensor x = Tensor::Zeros({2, 3});
  const Tensor labels = Tensor::Zeros({2}, {tensor::DType::kI64});
  const auto invalid = [](const std::string& loss) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(loss));
  };
  const Tensor other = Tensor::Zeros({3, 2});
  EXPECT_THAT(MseLoss(x, other),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("MseLoss"), HasSubstr("f32[2, 3]"),
                             HasSubstr("f32[3, 2]"))));
  EXPECT_THAT(L1Loss(x, other), invalid("L1Loss"));
  EXPECT_THAT(SmoothL1Loss(x, other), invalid("SmoothL1Loss"));
  EXPECT_THAT(SmoothL1Loss(x, x, 0), invalid("beta"));
  EXPECT_THAT(HuberLoss(x, other), invalid("HuberLoss"));
  EXPECT_THAT(HuberLoss(x, x, std::nan("")), invalid("delta"));
  EXPECT_THAT(BceLoss(x, Tensor()), invalid("BceLoss"));
  EXPECT_THAT(BceLoss(Tensor::Full({1}, 1.5), Tensor::Ones({1})),
              invalid("[0, 1]"));
  EXPECT_THAT(BceLoss(Tensor::Full({1}, std::nan("")), Tensor::Ones({1})),
              invalid("[0, 1]"));
  EXPECT_THAT(BceWithLogitsLoss(x, other), invalid("BceWithLogitsLoss"));
  EXPECT_THAT(
      BceWithLogitsLoss(x, x, Reduction::kMean, Tensor::Ones({2, 2, 3})),
      invalid("positive_weight"));
  EXPECT_THAT(KlDivLoss(x, other), invalid("KlDivLoss"));
  EXPECT_THAT(CrossEntropyLoss(x, other), invalid("CrossEntropyLoss"));
  EXPECT_THAT(CrossEntropyLoss(labels, labels), invalid("i64[2]"));
  EXPECT_THAT(CrossEntropyLoss(x, Tensor::Zeros({3}, {tensor::DType::kI64})),
              invalid("i64[3]"));
  EXPECT_THAT(CrossEntropyLoss(x, labels, {.class_weights = Tensor::Ones({2})}),
              invalid("class_weights"));
  EXPECT_THAT(CrossEntropyLoss(x, labels, {.label_smoothing = 1.5}),
              invalid("label_smoothing"));
  EXPECT_THAT(NllLoss(x, labels, {.label_smoothing = 0.1}),
              invalid("label_smoothing"));
}

TEST(LossTest, LabelOutsideTheClassesIsOutOfRange) {
  const Tensor x = Tensor::Zeros({2, 3});
  for (const int64_t label : {int64_t{-100}, int64_t{3}}) {
    const Tensor labels = Tensor::FromVector<int64_t>({0, label}, {2});
    const auto explained = [&](const char* loss) {
      return StatusIs(
          absl::StatusCode::kOutOfRange,
          AllOf(HasSubstr(loss), HasSubstr("id " + std::to_string(label) + " "),
                HasSubstr("ignored_label")));
    };
    EXPECT_THAT(CrossEntropyLoss(x, labels), explained("CrossEntropyLoss"));
    EXPECT_THAT(CrossEntropyLoss(x, labels, {.label_smoothing = 0.1}),
                explained("CrossEntropyLoss"));
    EXPECT_THAT(NllLoss(x, labels), explained("NllLoss"));
  }
}

TEST(LossTest, CrossEntropyOfLargeLogits) {
  const Tensor logits = Tensor::Full({1, 4}, 1e8);
  const Tensor labels = Tensor::Zeros({1}, {tensor::DType::kI64});
  const ClassLossOptions cases[] = {{},
                                    {.reduction = Reduction::kSum},
                                    {.ignored_label = -1},
                                    {.class_weights = Tensor::Ones({4})},
                                    {.label_smoothing = 0.1}};
  for (const ClassLossOptions& options : cases) {
    const auto loss = CrossEntropyLoss(logits, labels, options);
    ASSERT_THAT(loss, IsOk());
    EXPECT_NEAR(*loss->item<double>(), std::log(4.0), 1e-5);
  }
}

TEST(LossTest, MeanOverOnlyIgnoredLabelsIsNanWithZeroGradient) {
  const Tensor labels = Tensor::FromVector<int64_t>({7, 7}, {2});
  for (const auto& function : {CrossEntropyLoss, NllLoss}) {
    const Tensor x = Tensor::Zeros({2, 3});
    ASSERT_THAT(autograd::SetRequiresGrad(x), IsOk());
    const auto loss = function(x, labels, {.ignored_label = 7});
    ASSERT_THAT(loss, IsOk());
    EXPECT_TRUE(std::isnan(*loss->item<double>()));
    ASSERT_THAT(autograd::Backward(*loss), IsOk());
    EXPECT_THAT(autograd::Grad(x).ToVector<float>(), Each(0));
  }
}

TEST(LossTest, MeanOverOnlyLabelsOfWeightZeroIsNanWithZeroGradient) {
  const Tensor labels = Tensor::FromVector<int64_t>({2, 2}, {2});
  const Tensor weights = Tensor::FromVector<float>({1, 1, 0}, {3});
  for (const auto& function : {CrossEntropyLoss, NllLoss}) {
    const Tensor x = Tensor::Zeros({2, 3});
    ASSERT_THAT(autograd::SetRequiresGrad(x), IsOk());
    const auto loss = function(x, labels, {.class_weights = weights});
    ASSERT_THAT(loss, IsOk());
    EXPECT_TRUE(std::isnan(*loss->item<double>()));
    ASSERT_THAT(autograd::Backward(*loss), IsOk());
    EXPECT_THAT(autograd::Grad(x).ToVector<float>(), Each(0));
  }
}

TEST(LossTest, InfiniteScoresOfIgnoredLabelsDoNotCount) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const double smoothing : {0.0, 0.3}) {
    const Tensor x = Tensor::FromVector<float>({-inf, 0, 0, 0}, {2, 2});
    ASSERT_THAT(autograd::SetRequiresGrad(x), IsOk());
    const auto loss =
        CrossEntropyLoss(x, Tensor::FromVector<int64_t>({7, 1}, {2}),
                         {.ignored_label = 7, .label_smoothing = smoothing});
    ASSERT_THAT(loss, IsOk());
    EXPECT_NEAR(*loss->item<double>(), std::log(2.0), 1e-6);
    ASSERT_THAT(autograd::Backward(*loss), IsOk());
    const std::vector<float> gradient = autograd::Grad(x).ToVector<float>();
    const double own = (1 - smoothing) / 2;
    EXPECT_THAT(gradient, Pointwise(DoubleNear(1e-6), {0.0, 0.0, own, -own}));
  }
}

TEST(LossTest, BceOfCertainProbabilitiesHasAGradientInEveryDType) {
  using tensor::DType;
  for (const DType dtype :
       {DType::kF32, DType::kF64, DType::kF16, DType::kBF16}) {
    const Tensor x =
        *Tensor::FromVector<float>({0, 1, 0.5, 0, 1}, {5}).To(dtype);
    const Tensor y =
        *Tensor::FromVector<float>({0, 1, 0.5, 1, 0}, {5}).To(dtype);
    ASSERT_THAT(autograd::SetRequiresGrad(x), IsOk());
    const auto loss = BceLoss(x, y, Reduction::kSum);
    ASSERT_THAT(loss, IsOk());
    ASSERT_THAT(autograd::Backward(*loss), IsOk());
    EXPECT_THAT(autograd::Grad(x).To(DType::kF64)->ToVector<double>(),
                ElementsAre(0, 0, 0, Lt(-6e4), Gt(6e4)))
        << dtype;
  }
}

TEST(LossTest, TargetsDoNotGetAGradient) {
  const Tensor x = Tensor::Full({2}, 0.25);
  const Tensor y = Tensor::Full({2}, 0.75);
  ASSERT_THAT(autograd::SetRequiresGrad(x), IsOk());
  ASSERT_THAT(autograd::SetRequiresGrad(y), IsOk());
  for (const auto& loss :
       {MseLoss(x, y), L1Loss(x, y), SmoothL1Loss(x, y), HuberLoss(x, y),
        BceLoss(x, y), BceWithLogitsLoss(x, y), KlDivLoss(x, y)}) {
    ASSERT_THAT(loss, IsOk());
    ASSERT_THAT(autograd::Backward(*loss), IsOk());
  }
  EXPECT_TRUE(autograd::Grad(x).defined());
  EXPECT_FALSE(autograd::Grad(y).defined());
}

}  // namespace
}  // namespace hawser::nn
