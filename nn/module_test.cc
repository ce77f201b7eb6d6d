#include "nn/module.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "async/testing/status_matchers.h"
#include "autograd/variable.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace hawser::nn {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::hawser::tensor::DType;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A module with a weight, an undefined bias and a counter.
class Part : public Module {
 public:
  explicit Part(double value) : weight_(Tensor::Full({2}, value)) {
    RegisterParameter("weight", &weight_);
    RegisterParameter("bias", &bias_);
    RegisterBuffer("count", &count_);
  }

  Tensor weight_;
  Tensor bias_;
  Tensor count_ = Tensor::Full({}, 7, {.dtype = DType::kI64});
};

class Whole : public Module {
 public:
  Whole() {
    left_ = RegisterModule("left", std::make_unique<Part>(1));
    right_ = RegisterModule("right", std::make_unique<Part>(2));
    RegisterParameter("scale", &scale_);
  }

  Tensor scale_ = Tensor::Ones({1});
  Part* left_;
  Part* right_;
};

std::vector<std::string> Names(const NamedTensors& tensors) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors) names.push_back(name);
  return names;
}

TEST(ModuleTest, NamesAreInOrderOfRegistration) {
  const Whole module;
  EXPECT_THAT(Names(module.named_parameters()),
              ElementsAre("scale", "left.weight", "right.weight"));
  EXPECT_THAT(Names(module.named_buffers()),
              ElementsAre("left.count", "right.count"));
  EXPECT_THAT(Names(module.StateDict()),
              ElementsAre("scale", "left.weight", "right.weight", "left.count",
                          "right.count"));
}

TEST(ModuleTest, ParametersAreLeavesThatRequireAGradient) {
  const Whole module;
  for (const Tensor& parameter : module.parameters()) {
    EXPECT_TRUE(autograd::RequiresGrad(parameter));
  }
  EXPECT_TRUE(module.parameters()[1].is_same(module.left_->weight_));
  EXPECT_FALSE(autograd::RequiresGrad(module.left_->count_));
}

TEST(ModuleTest, ModeAppliesToSubmodules) {
  Whole module;
  EXPECT_TRUE(module.right_->is_training());
  module.Eval();
  EXPECT_FALSE(module.is_training());
  EXPECT_FALSE(module.right_->is_training());
  module.Train();
  EXPECT_TRUE(module.right_->is_training());
}

TEST(ModuleTest, ZeroGradAppliesToSubmodules) {
  Whole module;
  ASSERT_THAT(autograd::SetGrad(module.right_->weight_, Tensor::Ones({2})),
              IsOk());
  module.ZeroGrad();
  EXPECT_FALSE(autograd::Grad(module.right_->weight_).defined());
}

TEST(ModuleTest, ConversionUpdatesMembersAndKeepsRequiresGrad) {
  Whole module;
  ASSERT_THAT(autograd::SetRequiresGrad(module.left_->weight_, false), IsOk());
  ASSERT_THAT(module.To(DType::kF64), IsOk());
  EXPECT_EQ(module.left_->weight_.dtype(), DType::kF64);
  EXPECT_FALSE(autograd::RequiresGrad(module.left_->weight_));
  EXPECT_TRUE(autograd::RequiresGrad(module.right_->weight_));
  EXPECT_TRUE(module.parameters()[2].is_same(module.right_->weight_));
  EXPECT_THAT(module.right_->weight_.ToVector<double>(), ElementsAre(2, 2));
  EXPECT_EQ(module.left_->count_.dtype(), DType::kI64);
  EXPECT_THAT(module.To(DType::kI64),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("i64")));
}

TEST(ModuleTest, StateDictIsCopiedIntoTheSameTensors) {
  Whole source;
  source.scale_.data<float>()[0] = 3;
  source.left_->count_.data<int64_t>()[0] = 8;
  Whole target;
  const Tensor handle = target.scale_;
  const uint64_t version = handle.version();
  ASSERT_THAT(target.LoadStateDict(source.StateDict()), IsOk());
  EXPECT_THAT(handle.ToVector<float>(), ElementsAre(3));
  EXPECT_GT(handle.version(), version);
  EXPECT_THAT(target.left_->count_.ToVector<int64_t>(), ElementsAre(8));
  // The state was copied, so later changes of the source have no effect.
  source.scale_.data<float>()[0] = 4;
  EXPECT_THAT(handle.ToVector<float>(), ElementsAre(3));
}

TEST(ModuleTest, LoadingConvertsBetweenFloatingPointTypes) {
  Whole source;
  ASSERT_THAT(source.To(DType::kBF16), IsOk());
  Whole target;
  ASSERT_THAT(target.LoadStateDict(source.StateDict()), IsOk());
  EXPECT_THAT(target.right_->weight_.ToVector<float>(), ElementsAre(2, 2));
}

TEST(ModuleTest, ErrorListsEveryMismatchAndNothingIsLoaded) {
  Whole module;
  NamedTensors state = Whole().StateDict();
  state[0].second = Tensor::Zeros({1});                         // fits
  state[1].second = Tensor::Zeros({3});                         // shape
  state[2].first = "right.wait";                                // name
  state[3].second = Tensor::Zeros({}, {.dtype = DType::kF32});  // dtype
  state.push_back(state[4]);                                    // twice
  EXPECT_THAT(
      module.LoadStateDict(state),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("left.weight is f32[3] on cpu instead of "
                               "f32[2] on cpu"),
                     HasSubstr("right.weight is missing"),
                     HasSubstr("right.wait is unexpected"),
                     HasSubstr("left.count is f32[]"),
                     HasSubstr("right.count is given twice"))));
  EXPECT_THAT(module.scale_.ToVector<float>(), ElementsAre(1));
}

class Registers : public Module {
 public:
  using Module::RegisterParameter;
  Tensor tensor_ = Tensor::Ones({1});
};

TEST(ModuleDeathTest, NamesAreChecked) {
  Registers module;
  module.RegisterParameter("a", &module.tensor_);
  EXPECT_DEATH(module.RegisterParameter("a", &module.tensor_),
               "registered twice");
  EXPECT_DEATH(module.RegisterParameter("a.b", &module.tensor_), "dot");
  EXPECT_DEATH(module.RegisterParameter("", &module.tensor_), "empty");
}

}  // namespace
}  // namespace hawser::nn
