#include "optim/make_update_rule.h"

#include <limits>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "optim/rule_spec.h"
#include "optim/sgd.h"
#include "optim/update_rule.h"

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
  EXPECT_THAT(MakeUpdateRule({"Sgd", {}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("\"Sgd\""), HasSubstr("SGD, Adam"))));
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

}  // namespace
}  // namespace hawser::optim
