#include "optim/optimizer_file.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "optim/adam.h"
#include "optim/optimizer.h"
#include "tensor/io/safetensors.h"
#include "tensor/tensor.h"

namespace hawser::optim {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Two groups. The first has two parameters, of which the second one is never
// updated.
struct Training {
  Training() {
    parameters = {Tensor::Ones({2}), Tensor::Ones({1}), Tensor::Ones({3})};
    optimizer = *Optimizer::Create(
        {{.parameters = {parameters[0], parameters[1]}},
         {.parameters = {parameters[2]}, .options = {{"lr", 0.2}}}},
        Adam({.lr = 0.1, .amsgrad = true}));
  }

  void Step(double t) {
    EXPECT_THAT(optimizer->Step(std::vector<Tensor>{
                    Tensor::Full({2}, t), Tensor(), Tensor::Full({3}, -t)}),
                IsOk());
  }

  std::vector<Tensor> parameters;
  std::unique_ptr<Optimizer> optimizer;
};

std::string Path(const std::string& name) {
  return testing::TempDir() + "/" + name;
}

TEST(OptimizerFileTest, TrainingResumesExactly) {
  const std::string path = Path("adam.safetensors");
  Training straight;
  Training first;
  for (const double t : {1.0, 3.0}) {
    straight.Step(t);
    first.Step(t);
  }
  ASSERT_THAT(first.optimizer->SetOption(1, "lr", 0.05), IsOk());
  ASSERT_THAT(straight.optimizer->SetOption(1, "lr", 0.05), IsOk());
  ASSERT_THAT(SaveOptimizer(*first.optimizer, path), IsOk());

  Training second;
  for (size_t i = 0; i < 3; ++i) {
    ASSERT_THAT(second.parameters[i].CopyFrom(first.parameters[i]), IsOk());
  }
  ASSERT_THAT(LoadOptimizer(*second.optimizer, path), IsOk());
  EXPECT_EQ(second.optimizer->learning_rate(1), 0.05);
  EXPECT_EQ(second.optimizer->state(0).step, 2);
  EXPECT_EQ(second.optimizer->state(1).step, 0);
  straight.Step(-2);
  second.Step(-2);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(second.parameters[i].ToVector<float>(),
              straight.parameters[i].ToVector<float>());
  }
}

TEST(OptimizerFileTest, StateIsNamedAndCopied) {
  Training source;
  source.Step(1);
  const tensor::SafetensorsFile state = GetState(*source.optimizer);
  std::vector<std::string> names;
  for (const auto& [name, tensor] : state.tensors) names.push_back(name);
  EXPECT_THAT(names, ElementsAre("state.0.exp_avg", "state.0.exp_avg_sq",
                                 "state.0.max_exp_avg_sq", "state.0.step",
                                 "state.2.exp_avg", "state.2.exp_avg_sq",
                                 "state.2.max_exp_avg_sq", "state.2.step"));
  EXPECT_EQ(state.metadata.at("groups"), "2");
  EXPECT_EQ(state.metadata.at("group.0.parameters"), "2");

  Training target;
  ASSERT_THAT(SetState(*target.optimizer, state), IsOk());
  const std::vector<float> before =
      target.optimizer->state(0).slots[0].second.ToVector<float>();
  source.Step(5);
  EXPECT_EQ(target.optimizer->state(0).slots[0].second.ToVector<float>(),
            before);
}

class RefusedStateTest : public testing::Test {
 protected:
  RefusedStateTest() {
    training_.Step(1);
    state_ = GetState(*training_.optimizer);
    training_.Step(2);
  }

  void ExpectRefused(const std::string& message) {
    EXPECT_THAT(
        SetState(*training_.optimizer, state_),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)));
    EXPECT_EQ(training_.optimizer->state(0).step, 2);
  }

  Training training_;
  tensor::SafetensorsFile state_;
};

TEST_F(RefusedStateTest, EmptyState) {
  state_ = {};
  ExpectRefused("groups is missing");
}

TEST_F(RefusedStateTest, OtherNumberOfGroups) {
  state_.metadata["groups"] = "1";
  ExpectRefused("groups is 1, not 2");
}

TEST_F(RefusedStateTest, OtherNumberOfParameters) {
  state_.metadata["group.1.parameters"] = "7";
  ExpectRefused("group.1.parameters is 7, not 1");
}

TEST_F(RefusedStateTest, AnotherRule) {
  state_.metadata["group.1.rule"] = "SGD(lr=1)";
  ExpectRefused("group 1 is of SGD");
}

TEST_F(RefusedStateTest, OptionOutOfRange) {
  state_.metadata["group.1.rule"] = "Adam(lr=-1)";
  ExpectRefused("lr must be in");
}

TEST_F(RefusedStateTest, MissingSlot) {
  state_.tensors.erase(state_.tensors.begin() + 1);
  ExpectRefused("not [exp_avg, max_exp_avg_sq]");
}

TEST_F(RefusedStateTest, SlotOfAnotherShape) {
  state_.tensors[4].second = Tensor::Zeros({2});
  ExpectRefused("parameter 2: Adam: exp_avg");
}

TEST_F(RefusedStateTest, UnexpectedTensor) {
  for (const char* name : {"state.3.exp_avg", "state.x.exp_avg", "state.0",
                           "state.-1.exp_avg", "weight"}) {
    state_.tensors.back().first = name;
    ExpectRefused(name);
  }
  state_.tensors.back().first = "state.2.momentum";
  ExpectRefused("momentum");
}

TEST_F(RefusedStateTest, InvalidStep) {
  state_.tensors[3].second = Tensor::Zeros({});
  ExpectRefused("state.0.step must be an i64");
  state_.tensors[3].second = Tensor::FromVector<int64_t>({-1}, {});
  ExpectRefused("step -1");
  state_.tensors[3].second = Tensor::FromVector<int64_t>({1, 2}, {2});
  ExpectRefused("");
}

TEST(OptimizerFileTest, ErrorNamesTheFile) {
  const std::string path = Path("empty.safetensors");
  ASSERT_THAT(tensor::SaveSafetensors(path, {}), IsOk());
  Training training;
  EXPECT_THAT(LoadOptimizer(*training.optimizer, path),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr(path), HasSubstr("groups"))));
  EXPECT_THAT(LoadOptimizer(*training.optimizer, Path("none")),
              StatusIs(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace hawser::optim
