#include "optim/rule_spec.h"

#include "absl/status/status.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::optim {
namespace {

using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::HasSubstr;

TEST(RuleSpecTest, ValuesRoundTripThroughText) {
  const RuleSpec spec{"Adam", {{"lr", 0.1}, {"beta2", 1.0 / 3}, {"eps", 1e-8}}};
  EXPECT_EQ(spec.ToString(),
            "Adam(lr=0.1,beta2=0.33333333333333331,eps=1e-08)");
  EXPECT_THAT(ParseRuleSpec(spec.ToString()), IsOkAndHolds(spec));
}

TEST(RuleSpecTest, ParsingIgnoresSpacesAndEmptyParentheses) {
  EXPECT_THAT(ParseRuleSpec(" SGD ( lr = 1 , nesterov=0 ) "),
              IsOkAndHolds(RuleSpec{"SGD", {{"lr", 1}, {"nesterov", 0}}}));
  EXPECT_THAT(ParseRuleSpec("Adam"), IsOkAndHolds(RuleSpec{"Adam", {}}));
  EXPECT_THAT(ParseRuleSpec("Adam()"), IsOkAndHolds(RuleSpec{"Adam", {}}));
}

TEST(RuleSpecTest, MalformedTextIsRejected) {
  for (const char* text :
       {"", "(lr=1)", "SGD(lr=1", "SGD(lr)", "SGD(lr=)", "SGD(lr=x)",
        "SGD(lr=1,)", "SGD(lr=1,lr=2)", "SGD(lr=1=2)"}) {
    EXPECT_THAT(ParseRuleSpec(text),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(text)))
        << text;
  }
}

TEST(RuleSpecTest, SetReplacesOrAppends) {
  RuleSpec spec{"SGD", {{"lr", 1}}};
  spec.Set("lr", 2);
  spec.Set("momentum", 0.5);
  EXPECT_EQ(spec, (RuleSpec{"SGD", {{"lr", 2}, {"momentum", 0.5}}}));
  EXPECT_EQ(spec.Find("momentum"), 0.5);
  EXPECT_EQ(spec.Find("dampening"), std::nullopt);
}

}  // namespace
}  // namespace hawser::optim
