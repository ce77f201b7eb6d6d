// Tests that compare the update rules with results of PyTorch 1.13.1.

#include <cmath>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "async/testing/status_matchers.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "optim/make_update_rule.h"
#include "optim/rule_spec.h"
#include "optim/update_rule.h"
#include "tensor/tensor.h"

namespace hawser::optim {
namespace {

using ::hawser::async::IsOk;
using ::nlohmann::json;

// Converts PyTorch's keyword arguments to options. A pair becomes two options.
RuleSpec SpecOf(const json& test_case) {
  RuleSpec spec{test_case["optimizer"], {}};
  for (const auto& [name, value] : test_case["options"].items()) {
    if (name == "betas") {
      spec.Set("beta1", value[0]);
      spec.Set("beta2", value[1]);
    } else if (name == "etas") {
      spec.Set("eta_minus", value[0]);
      spec.Set("eta_plus", value[1]);
    } else if (name == "step_sizes") {
      spec.Set("step_size_min", value[0]);
      spec.Set("step_size_max", value[1]);
    } else {
      spec.Set(name, value.is_boolean() ? (value.get<bool>() ? 1.0 : 0.0)
                                        : value.get<double>());
    }
  }
  return spec;
}

Tensor Vector(const std::vector<double>& values) {
  return Tensor::FromVector(values, {static_cast<int64_t>(values.size())});
}

TEST(OptimizerGoldenTest, StepsEqualThoseOfPyTorch) {
  std::ifstream file("optim/testdata/optimizer_golden.json");
  ASSERT_TRUE(file.is_open());
  const json golden = json::parse(file);
  ASSERT_EQ(golden["cases"].size(), 16);
  for (const json& test_case : golden["cases"]) {
    const RuleSpec spec = SpecOf(test_case);
    SCOPED_TRACE(spec.ToString());
    const absl::StatusOr<std::unique_ptr<UpdateRule>> rule =
        MakeUpdateRule(spec);
    ASSERT_THAT(rule, IsOk());
    Tensor parameter = Vector(test_case["start"]);
    ParameterState state;
    for (size_t t = 0; t < test_case["gradients"].size(); ++t) {
      ASSERT_THAT((*rule)->Apply(parameter, Vector(test_case["gradients"][t]),
                                 state, {(*rule)->learning_rate()}),
                  IsOk());
      const std::vector<double> expected = test_case["parameters"][t];
      const std::vector<double> actual = parameter.ToVector<double>();
      for (size_t i = 0; i < expected.size(); ++i) {
        ASSERT_NEAR(actual[i], expected[i], 1e-12) << "step " << t;
      }
    }
  }
}

struct CheckValue {
  const char* rule;
  double first;
  double second;
};

// Three steps from (1, -2) with the gradient (0.5, -1.5) * t.
class CheckValueTest : public testing::TestWithParam<CheckValue> {};

TEST_P(CheckValueTest, ThreeStepsGiveThePublishedValues) {
  const auto rule = MakeUpdateRule(*ParseRuleSpec(GetParam().rule));
  ASSERT_THAT(rule, IsOk());
  Tensor parameter = Vector({1, -2});
  ParameterState state;
  for (int t = 1; t <= 3; ++t) {
    ASSERT_THAT((*rule)->Apply(parameter, Vector({0.5 * t, -1.5 * t}), state,
                               {(*rule)->learning_rate()}),
                IsOk());
  }
  EXPECT_EQ(state.step, 3);
  EXPECT_NEAR(parameter.ToVector<double>()[0], GetParam().first, 1e-12);
  EXPECT_NEAR(parameter.ToVector<double>()[1], GetParam().second, 1e-12);
}

INSTANTIATE_TEST_SUITE_P(
    OptimizerGoldenTest, CheckValueTest,
    testing::Values(
        CheckValue{"SGD(lr=.1)", 0.700000000000, -1.100000000000},
        CheckValue{"SGD(lr=.1,momentum=.9)", 0.524500000000, -0.573500000000},
        CheckValue{"SGD(lr=.1,momentum=.9,dampening=.5)", 0.694500000000,
                   -1.083500000000},
        CheckValue{"SGD(lr=.1,momentum=.9,nesterov=1,weight_decay=.01)",
                   0.264890458191, 0.197293526568},
        CheckValue{"Adagrad", 0.973037890836, -1.973037890834},
        CheckValue{"Adagrad(lr_decay=.1,initial_accumulator_value=.1,"
                   "weight_decay=.01)",
                   0.977108805112, -1.975462006612},
        CheckValue{"Adam", 0.997076816791, -1.997076816764},
        CheckValue{"Adam(lr=.1,weight_decay=.01,amsgrad=1)", 0.707453279269,
                   -1.707535487281},
        CheckValue{"AdamW(lr=.1)", 0.704981096313, -1.701984092578},
        CheckValue{"Adadelta", 0.987928098904, -1.987927935439},
        CheckValue{"Adamax", 0.995093610474, -1.995093610431},
        CheckValue{"RMSprop", 0.730117286713, -1.730117265166},
        CheckValue{"RMSprop(centered=1,momentum=.9)", 0.474584613321,
                   -1.474584563539},
        CheckValue{"Rprop", 0.963600000000, -1.963600000000}));

}  // namespace
}  // namespace hawser::optim
