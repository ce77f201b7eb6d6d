#include "ps/parameter_set.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/testing/status_matchers.h"
#include "autograd/backward.h"
#include "autograd/ops/softmax.h"
#include "autograd/variable.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/linear.h"
#include "nn/module.h"
#include "nn/sequential.h"
#include "optim/optimizer.h"
#include "optim/rule_spec.h"
#include "ps/dense_table.h"
#include "ps/table_service.h"
#include "rpc/testing/agent_test_fixture.h"
#include "tensor/backend/kernel_types.h"
#include "tensor/dtype.h"
#include "tensor/ops/random.h"
#include "tensor/tensor.h"

namespace hawser::ps {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::HasSubstr;

// 12-9-4.
std::unique_ptr<nn::Sequential> Model(uint64_t seed) {
  tensor::Generator generator(seed);
  auto model = std::make_unique<nn::Sequential>();
  model->Append("a",
                *nn::Linear::Create({.in_features = 12,
                                     .out_features = 9,
                                     .activation = tensor::Activation::kRelu},
                                    generator));
  model->Append("b", *nn::Linear::Create({.in_features = 9, .out_features = 4},
                                         generator));
  return model;
}

// Leaves the gradients of batch number `step` at the parameters; returns the
// loss.
double Backward(nn::Sequential& model, uint64_t step) {
  tensor::Generator generator(1000 + step);
  const Tensor x = *tensor::Uniform({8, 12}, -1, 1, generator);
  std::vector<int64_t> labels;
  for (uint64_t i = 0; i < 8; ++i) {
    labels.push_back(static_cast<int64_t>((step + i * i) % 4));
  }
  model.ZeroGrad();
  const Tensor loss = *autograd::SoftmaxCrossEntropy(
      *model.Forward(x), Tensor::FromVector(labels, {8}));
  EXPECT_THAT(autograd::Backward(loss), IsOk());
  return *loss.item<double>();
}

std::vector<float> Values(const nn::Module& model) {
  std::vector<float> values;
  for (const Tensor& parameter : model.parameters()) {
    const std::vector<float> more = parameter.ToVector<float>();
    values.insert(values.end(), more.begin(), more.end());
  }
  return values;
}

const ParameterSetOptions kAdam = {.rule = {"Adam", {{"lr", 0.01}}}};

// The workers 0 and 1 train models on the workers 2 to 4.
class ParameterSetTest : public testing::Test {
 protected:
  void SetUp() override {
    job_.StartAll(5, [](int, rpc::AgentOptions& options) {
      options.services.push_back(
          std::make_unique<TableService>(TableServiceOptions{
              .snapshot_directory = testing::TempDir() + "/" +
                                    testing::UnitTest::GetInstance()
                                        ->current_test_info()
                                        ->name()}));
    });
  }

  std::unique_ptr<ParameterSet> Create(
      nn::Module& model, const ParameterSetOptions& options = kAdam,
      int trainer = 0) {
    absl::StatusOr<std::unique_ptr<ParameterSet>> set =
        ParameterSet::Create(job_.agent(trainer), model, options, kServers);
    EXPECT_THAT(set, IsOk());
    return *std::move(set);
  }

  const std::vector<std::string> kServers = {"w2", "w3", "w4"};
  rpc::TestJob job_;
};

TEST_F(ParameterSetTest, OneTrainerTrainsAsAnOptimizerDoes) {
  for (const char* rule :
       {"Adam(lr=0.01)", "SGD(lr=0.1,momentum=0.9,weight_decay=0.01)"}) {
    SCOPED_TRACE(rule);
    const optim::RuleSpec spec = *optim::ParseRuleSpec(rule);
    const auto local = Model(1);
    const auto optimizer = *optim::Optimizer::Create(local->parameters(), spec);
    const auto model = Model(1);
    const auto set = Create(*model, {.name = spec.name, .rule = spec});
    for (uint64_t step = 0; step < 20; ++step) {
      const double rate = step < 10 ? 0.1 : 0.05;
      EXPECT_NEAR(Backward(*model, step), Backward(*local, step), 1e-6);
      ASSERT_THAT(optimizer->SetOption("lr", rate), IsOk());
      ASSERT_THAT(optimizer->Step(), IsOk());
      ASSERT_THAT(set->Step({.learning_rate = rate}), IsOk());
    }
    EXPECT_THAT(Values(*model),
                testing::Pointwise(testing::FloatNear(1e-5), Values(*local)));
  }
}

TEST_F(ParameterSetTest, TrainersHaveMomentaOfTheirOwn) {
  const ParameterSetOptions options = {.rule = {"SGD", {{"lr", 0.1}}},
                                       .trainer_momentum = 0.9};
  const auto local = Model(1);
  const auto optimizer = *optim::Optimizer::Create(
      local->parameters(), *optim::ParseRuleSpec("SGD(lr=0.1,momentum=0.9)"));
  const auto model = Model(1);
  const auto set = Create(*model, options);
  for (uint64_t step = 0; step < 20; ++step) {
    Backward(*model, step);
    Backward(*local, step);
    ASSERT_THAT(optimizer->Step(), IsOk());
    ASSERT_THAT(set->Step(), IsOk());
  }
  EXPECT_EQ(Values(*model), Values(*local));
  // Nothing moves by a step without gradients of another trainer, but by one of
  // this trainer.
  const auto other_model = Model(1);
  const auto other = Create(*other_model, options, /*trainer=*/1);
  ASSERT_THAT(other->Step(), IsOk());
  EXPECT_EQ(Values(*other_model), Values(*model));
  model->ZeroGrad();
  ASSERT_THAT(set->Step(), IsOk());
  EXPECT_NE(Values(*other_model), Values(*model));
}

TEST_F(ParameterSetTest, LaterTrainersGetTheParametersOfTheFirst) {
  const auto first = Model(1);
  const auto set = Create(*first);
  EXPECT_EQ(Values(*first), Values(*Model(1)));
  Backward(*first, 0);
  ASSERT_THAT(set->Step(), IsOk());
  const auto second = Model(2);
  const auto other = Create(*second, kAdam, /*trainer=*/1);
  EXPECT_EQ(Values(*second), Values(*first));
  // A step of one is seen by the other's next one, also without gradients.
  Backward(*second, 1);
  ASSERT_THAT(other->Step(), IsOk());
  EXPECT_NE(Values(*second), Values(*first));
  ASSERT_THAT(set->Fetch(), IsOk());
  EXPECT_EQ(Values(*second), Values(*first));
}

TEST_F(ParameterSetTest, GradientsOfAnAsynchronousStepCanBeDropped) {
  const auto model = Model(1);
  const auto set = Create(*model);
  const auto same = Model(1);
  const auto expected = Create(*same, {.name = "other", .rule = kAdam.rule});
  Backward(*model, 0);
  const async::Future<void> step = set->StepAsync();
  model->ZeroGrad();
  Backward(*same, 0);
  ASSERT_THAT(expected->Step(), IsOk());
  ASSERT_THAT(step.Wait(), IsOk());
  EXPECT_EQ(Values(*model), Values(*same));
}

TEST_F(ParameterSetTest, GroupsHaveRulesOfTheirOwn) {
  const auto model = Model(1);
  const auto set =
      Create(*model, {.rule = {"SGD", {{"lr", 1}, {"weight_decay", 0.5}}},
                      .groups = {{.name = "biases",
                                  .rule = {"SGD", {{"lr", 1}}},
                                  .parameters = {"a.bias", "b.bias"}}}});
  // Without gradients only the weights decay.
  ASSERT_THAT(set->Step(), IsOk());
  const auto before = Model(1);
  const nn::NamedTensors parameters = model->named_parameters();
  for (size_t i = 0; i < parameters.size(); ++i) {
    const auto& [name, parameter] = parameters[i];
    std::vector<float> expected = before->parameters()[i].ToVector<float>();
    if (name.ends_with("weight")) {
      for (float& weight : expected) weight *= 0.5f;
    }
    EXPECT_EQ(parameter.ToVector<float>(), expected) << name;
  }
}

TEST_F(ParameterSetTest, FilesHaveTheParametersOfTheServers) {
  const std::string path = testing::TempDir() + "/parameters.safetensors";
  const auto model = Model(1);
  const auto set = Create(*model);
  const auto other_model = Model(1);
  const auto other = Create(*other_model, kAdam, /*trainer=*/1);
  Backward(*other_model, 3);
  ASSERT_THAT(other->Step(), IsOk());
  ASSERT_THAT(set->Save(path), IsOk());
  const std::vector<float> saved = Values(*model);
  EXPECT_EQ(saved, Values(*other_model));
  Backward(*model, 4);
  ASSERT_THAT(set->Step(), IsOk());
  ASSERT_NE(Values(*model), saved);
  ASSERT_THAT(set->Load(path), IsOk());
  ASSERT_THAT(other->Fetch(), IsOk());
  EXPECT_EQ(Values(*other_model), saved);
  EXPECT_THAT(set->Load(path + "/none"), testing::Not(IsOk()));
}

TEST_F(ParameterSetTest, SnapshotContinuesOnOtherServers) {
  const ParameterSetOptions options = {
      .rule = kAdam.rule,
      .groups = {{.name = "biases",
                  .rule = {"SGD", {{"lr", 1}, {"momentum", 0.5}}},
                  .parameters = {"a.bias", "b.bias"}}}};
  const auto model = Model(1);
  const auto set = Create(*model, options);
  const auto train = [](nn::Sequential& trained, ParameterSet& on) {
    Backward(trained, 5);
    ASSERT_THAT(on.Step(), IsOk());
  };
  train(*model, *set);
  ASSERT_THAT(set->SaveSnapshot("full").Wait(), IsOk());
  train(*model, *set);
  ASSERT_THAT(set->SaveSnapshot("one", {.base = "full"}).Wait(), IsOk());
  train(*model, *set);
  const auto restored = Model(2);
  const absl::StatusOr<std::unique_ptr<ParameterSet>> again =
      ParameterSet::Restore(job_.agent(1), *restored, options, "one", {"w0"});
  ASSERT_THAT(again, IsOk());
  train(*restored, **again);
  EXPECT_EQ(Values(*restored), Values(*model));
}

TEST_F(ParameterSetTest, SparseGradientsSendEachElementInTheEnd) {
  const ParameterSetOptions sgd = {.rule = {"SGD", {{"lr", 1}}}};
  ParameterSetOptions sparse = sgd;
  sparse.name = "sparse";
  sparse.gradient_density = 0.1;
  const auto model = Model(1);
  const auto exact = Model(1);
  const auto parameters =
      *ParameterSet::Create(job_.agent(0), *model, sparse, {"w2", "w3"});
  const auto reference =
      *ParameterSet::Create(job_.agent(0), *exact, sgd, {"w2", "w3"});
  // Integers, so that sums are exact.
  const auto set_gradients = [](nn::Sequential& module, float scale) {
    for (const Tensor& parameter : module.parameters()) {
      std::vector<float> numbers;
      for (int64_t i = 0; i < parameter.num_elements(); ++i) {
        numbers.push_back(scale * static_cast<float>(i % 7 - 3));
      }
      ASSERT_THAT(autograd::SetGrad(parameter, Tensor::FromVector(
                                                   numbers, parameter.shape())),
                  IsOk());
    }
  };
  set_gradients(*exact, 1);
  ASSERT_THAT(reference->Step(), IsOk());
  set_gradients(*model, 1);
  ASSERT_THAT(parameters->Step(), IsOk());
  EXPECT_NE(Values(*model), Values(*exact));
  // What was kept follows, a tenth in each step.
  set_gradients(*model, 0);
  for (int step = 0; step < 10; ++step) ASSERT_THAT(parameters->Step(), IsOk());
  const std::vector<float> values = Values(*model);
  const std::vector<float> expected = Values(*exact);
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_NEAR(values[i], expected[i], 1e-6) << i;
  }
}

TEST_F(ParameterSetTest, WrongModulesAndOptionsAreRefused) {
  const auto model = Model(1);
  Create(*model);
  const auto create = [&](nn::Module& module,
                          const ParameterSetOptions& options) {
    return ParameterSet::Create(job_.agent(0), module, options, kServers)
        .status();
  };
  nn::Sequential other;
  tensor::Generator generator(1);
  other.Append("c", *nn::Linear::Create({.in_features = 1, .out_features = 1},
                                        generator));
  EXPECT_THAT(create(other, kAdam),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("c.bias")));
  EXPECT_THAT(create(*model, {.name = "lamb", .rule = {"LAMB", {{"lr", 1}}}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("LAMB")));
  ParameterSetOptions groups = kAdam;
  groups.groups = {{.name = "g", .rule = kAdam.rule, .parameters = {"x"}}};
  EXPECT_THAT(create(*model, groups),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("group \"g\": the module has no parameter "
                                 "\"x\"")));
  groups.groups[0].parameters = {"a.bias", "a.bias"};
  EXPECT_THAT(create(*model, groups),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("\"a.bias\" is named in groups twice")));
  ASSERT_THAT(other.To(tensor::DType::kF64), IsOk());
  EXPECT_THAT(create(other, {.name = "wide", .rule = kAdam.rule}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("servers keep contiguous f32")));
  EXPECT_THAT(create(*model, {.rule = kAdam.rule, .trainer_momentum = 1}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("must be from 0 to below 1, not 1")));
  nn::Sequential empty;
  EXPECT_THAT(create(empty, kAdam), StatusIs(absl::StatusCode::kInvalidArgument,
                                             HasSubstr("no parameters")));
}

}  // namespace
}  // namespace hawser::ps
