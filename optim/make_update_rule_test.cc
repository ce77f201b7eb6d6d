#include "optim/make_update_rule.h"

#include <atomic>
#include <cmath>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "optim/rule_spec.h"
#include "optim/sgd.h"
#include "optim/update_rule.h"
#include "tensor/tensor.h"

namespace hawser::optim {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

RuleSpec Parsed(const std::string& text) { return *ParseRuleSpec(text); }

class RefusedOptionTest : public testing::TestWithParam<const char*> {};

TEST_P(RefusedOptionTest, GivesInvalidArgument) {
  const RuleSpec spec = Parsed(GetParam());
  EXPECT_THAT(MakeUpdateRule(spec), StatusIs(absl::StatusCode::kInvalidArgument,
                                             HasSubstr(spec.name)));
}

INSTANTIATE_TEST_SUITE_P(
    MakeUpdateRuleTest, RefusedOptionTest,
    testing::Values(
        "SGD", "SGD(lr=-1)", "SGD(lr=nan)", "SGD(lr=inf)",
        "SGD(lr=1,momentum=-0.1)", "SGD(lr=1,weight_decay=-1)",
        "SGD(lr=1,nesterov=1)", "SGD(lr=1,nesterov=1,momentum=.9,dampening=.1)",
        "SGD(lr=1,nesterov=0.5,momentum=.9)", "SGD(lr=1,dampening=inf)",
        "Adam(lr=-1)", "Adam(beta1=1)", "Adam(beta1=-0.1)", "Adam(beta2=1)",
        "Adam(eps=-1)", "Adam(weight_decay=-1)", "Adam(amsgrad=2)",
        "AdamW(lr=-1)", "AdamW(beta1=1)", "AdamW(beta2=-1)", "AdamW(eps=-1)",
        "AdamW(weight_decay=-1)", "SparseAdam(lr=0)", "SparseAdam(eps=0)",
        "SparseAdam(beta1=1)", "SparseAdam(beta2=1)", "Adamax(lr=-1)",
        "Adamax(beta1=1)", "Adamax(beta2=1)", "Adamax(eps=-1)",
        "Adamax(weight_decay=-1)", "Adagrad(lr=-1)", "Adagrad(lr_decay=-1)",
        "Adagrad(weight_decay=-1)", "Adagrad(initial_accumulator_value=-1)",
        "Adagrad(eps=-1)", "Adadelta(lr=-1)", "Adadelta(rho=-0.1)",
        "Adadelta(rho=1.1)", "Adadelta(eps=-1)", "Adadelta(weight_decay=-1)",
        "RMSprop(lr=-1)", "RMSprop(alpha=-1)", "RMSprop(eps=-1)",
        "RMSprop(momentum=-1)", "RMSprop(weight_decay=-1)", "Rprop(lr=-1)",
        "Rprop(eta_minus=0)", "Rprop(eta_minus=1)", "Rprop(eta_plus=1)",
        "Rprop(step_size_min=-1)", "Rprop(step_size_min=1,step_size_max=0.5)",
        "FTRL", "FTRL(lr=0)", "FTRL(lr=1,beta=-1)", "FTRL(lr=1,l1=-1)",
        "FTRL(lr=1,l2=-1)", "LAMB(lr=-1)", "LAMB(beta1=1)", "LAMB(beta2=1)",
        "LAMB(eps=-1)", "LAMB(weight_decay=-1)"));

class DefaultsTest : public testing::TestWithParam<const char*> {};

TEST_P(DefaultsTest, SpecOfTheRuleHasEveryOption) {
  const RuleSpec expected = Parsed(GetParam());
  RuleSpec bare{expected.name, {}};
  if (bare.name == "SGD" || bare.name == "FTRL") bare.Set("lr", 1);
  const absl::StatusOr<std::unique_ptr<UpdateRule>> rule = MakeUpdateRule(bare);
  ASSERT_THAT(rule, IsOk());
  EXPECT_EQ((*rule)->spec().ToString(), expected.ToString());
  EXPECT_EQ((*rule)->learning_rate(), expected.Find("lr"));
}

INSTANTIATE_TEST_SUITE_P(
    MakeUpdateRuleTest, DefaultsTest,
    testing::Values(
        "SGD(lr=1,momentum=0,dampening=0,weight_decay=0,nesterov=0,maximize=0)",
        "Adam(lr=0.001,beta1=0.9,beta2=0.999,eps=1e-8,weight_decay=0,amsgrad=0,"
        "maximize=0)",
        "AdamW(lr=0.001,beta1=0.9,beta2=0.999,eps=1e-8,weight_decay=0.01,"
        "amsgrad=0,maximize=0)",
        "SparseAdam(lr=0.001,beta1=0.9,beta2=0.999,eps=1e-8,maximize=0)",
        "Adamax(lr=0.002,beta1=0.9,beta2=0.999,eps=1e-8,weight_decay=0,"
        "maximize=0)",
        "Adagrad(lr=0.01,lr_decay=0,weight_decay=0,initial_accumulator_value=0,"
        "eps=1e-10,maximize=0)",
        "Adadelta(lr=1,rho=0.9,eps=1e-6,weight_decay=0,maximize=0)",
        "RMSprop(lr=0.01,alpha=0.99,eps=1e-8,weight_decay=0,momentum=0,"
        "centered=0,maximize=0)",
        "Rprop(lr=0.01,eta_minus=0.5,eta_plus=1.2,step_size_min=1e-6,"
        "step_size_max=50,maximize=0)",
        "FTRL(lr=1,beta=1,l1=0,l2=0,maximize=0)",
        "LAMB(lr=0.001,beta1=0.9,beta2=0.999,eps=1e-6,weight_decay=0,"
        "maximize=0)"));

TEST(MakeUpdateRuleTest, ErrorForUnknownNameListsTheRules) {
  EXPECT_THAT(
      MakeUpdateRule({"Sgd", {}}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("\"Sgd\""), HasSubstr("Rprop, SGD, SparseAdam"),
                     HasSubstr("RegisterUpdateRule"))));
}

TEST(MakeUpdateRuleTest, ErrorForUnknownOptionListsTheOptions) {
  EXPECT_THAT(MakeUpdateRule({"Adam", {{"momentum", 0.9}}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("\"momentum\""),
                             HasSubstr("lr, beta1, beta2"))));
}

TEST(MakeUpdateRuleTest, RepeatedOptionIsRejected) {
  EXPECT_THAT(MakeUpdateRule({"Adam", {{"lr", 1}, {"lr", 2}}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("lr is given twice")));
}

TEST(MakeUpdateRuleTest, OptionsStructGivesTheSameRule) {
  const RuleSpec spec = Sgd({.lr = 0.1, .momentum = 0.9, .nesterov = true});
  EXPECT_EQ(spec.ToString(),
            "SGD(lr=0.1,momentum=0.9,dampening=0,weight_decay=0,nesterov=1,"
            "maximize=0)");
  const auto rule = MakeUpdateRule(spec);
  ASSERT_THAT(rule, IsOk());
  EXPECT_EQ((*rule)->spec(), spec);
}

TEST(MakeUpdateRuleTest, OptionsStructWithoutRequiredOptionIsRejected) {
  EXPECT_THAT(MakeUpdateRule(Sgd({.momentum = 0.9})),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("lr")));
}

// Moves by the rate against the sign of the gradient, and counts its updates in
// a slot.
class SignRule final : public UpdateRule {
 public:
  SignRule(RuleSpec spec, std::vector<Slot> slots)
      : UpdateRule(std::move(spec), std::move(slots),
                   GradientKind::kDenseAndRows) {}

  void Update(std::span<const UpdateSpan> spans) const override {
    for (const UpdateSpan& span : spans) {
      for (size_t i = 0; i < span.count; ++i) {
        const float g = static_cast<const float*>(span.gradient)[i];
        static_cast<float*>(span.parameter)[i] -=
            static_cast<float>(span.learning_rate) *
            static_cast<float>((g > 0) - (g < 0));
        static_cast<float*>(span.slots[0])[i] += 1;
      }
    }
  }
};

absl::StatusOr<std::unique_ptr<UpdateRule>> MakeSign(const RuleSpec& spec) {
  return std::make_unique<SignRule>(
      RuleSpec{spec.name, {{"lr", spec.Find("lr").value_or(0.5)}}},
      std::vector<Slot>{{"count", 0}});
}

TEST(RegisterUpdateRuleTest, TheRuleIsMadeByItsName) {
  EXPECT_FALSE(HasUpdateRule("Sign"));
  ASSERT_THAT(RegisterUpdateRule("Sign", MakeSign), IsOk());
  EXPECT_TRUE(HasUpdateRule("Sign"));
  const auto rule = MakeUpdateRule({"Sign", {}});
  ASSERT_THAT(rule, IsOk());
  EXPECT_EQ((*rule)->learning_rate(), 0.5);
  tensor::Tensor parameter = tensor::Tensor::Zeros({2});
  ParameterState state;
  for (int step = 0; step < 3; ++step) {
    ASSERT_THAT((*rule)->Apply(parameter, tensor::Tensor::Full({2}, 7), state,
                               {.learning_rate = 0.25}),
                IsOk());
  }
  EXPECT_EQ(parameter.data<float>()[1], -0.75f);
  EXPECT_EQ(state.slots[0].first, "count");
  EXPECT_EQ(state.slots[0].second.data<float>()[1], 3);

  EXPECT_THAT(RegisterUpdateRule("Sign", MakeSign),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("Sign")));
  EXPECT_THAT(MakeUpdateRule({"sign", {}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("SGD, Sign, SparseAdam")));
}

TEST(RegisterUpdateRuleTest, WrongRegistrationsAreRefused) {
  for (const char* name : {"SGD", "FTRL"}) {
    EXPECT_THAT(RegisterUpdateRule(name, MakeSign),
                StatusIs(absl::StatusCode::kAlreadyExists));
  }
  for (const std::string& name : {std::string(), std::string("a b"),
                                  std::string("a("), std::string(101, 'a')}) {
    EXPECT_THAT(RegisterUpdateRule(name, MakeSign),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("1 to 100 letters")));
  }
  EXPECT_THAT(RegisterUpdateRule("None", nullptr),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("needs a factory")));
}

TEST(RegisterUpdateRuleTest, WhatAFactoryReturnsIsChecked) {
  const auto returns = [](const std::string& name, std::vector<Slot> slots) {
    return [name, slots](
               const RuleSpec&) -> absl::StatusOr<std::unique_ptr<UpdateRule>> {
      return std::make_unique<SignRule>(RuleSpec{name, {}}, slots);
    };
  };
  const auto expect_refused = [](const std::string& name,
                                 UpdateRuleFactory factory,
                                 absl::StatusCode code,
                                 const std::string& error) {
    ASSERT_THAT(RegisterUpdateRule(name, std::move(factory)), IsOk());
    EXPECT_THAT(MakeUpdateRule({name, {}}), StatusIs(code, HasSubstr(error)));
  };
  const auto internal = absl::StatusCode::kInternal;
  expect_refused("Misnamed", returns("SGD", {}), internal,
                 "whose spec has the name \"SGD\"");
  expect_refused("Wide",
                 returns("Wide", {{"a", 0}, {"b", 0}, {"c", 0}, {"d", 0}}),
                 internal, "4 slots, of at most 3");
  expect_refused("Twice", returns("Twice", {{"a", 0}, {"a", 0}}), internal,
                 "slot \"a\"");
  expect_refused("Nan", returns("Nan", {{"a", std::nan("")}}), internal,
                 "slot \"a\"");
  expect_refused(
      "Nothing",
      [](const RuleSpec&) -> absl::StatusOr<std::unique_ptr<UpdateRule>> {
        return std::unique_ptr<UpdateRule>();
      },
      internal, "has returned none");
  expect_refused(
      "Fails",
      [](const RuleSpec&) -> absl::StatusOr<std::unique_ptr<UpdateRule>> {
        return absl::InvalidArgumentError("Fails needs lr");
      },
      absl::StatusCode::kInvalidArgument, "Fails needs lr");
}

TEST(RegisterUpdateRuleTest, ThreadsMayRegisterAndMakeRules) {
  std::vector<std::thread> threads;
  std::atomic<int> registered = 0;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        const std::string name = absl::StrCat("Rule", i);
        if (RegisterUpdateRule(name, MakeSign).ok()) ++registered;
        EXPECT_THAT(MakeUpdateRule({name, {}}), IsOk());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(registered, 20);
}

}  // namespace
}  // namespace hawser::optim
