#ifndef HAWSER_OPTIM_RULE_SPEC_H_
#define HAWSER_OPTIM_RULE_SPEC_H_

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace hawser::optim {

// Names an update rule and its options: what is sent to another worker or
// written into a file so that the same rule is made there.
//
//   RuleSpec{"SGD", {{"lr", 0.1}, {"momentum", 0.9}}}
//
// Names of rules and options are PyTorch's, a pair being two options ("beta1",
// "beta2"). Switches are 0 or 1. Options that are left out have their default.
// The options structs of the rules' headers (`Sgd({.lr = 0.1})`) give a spec
// whose option names the compiler has checked; `MakeUpdateRule` checks the
// rest.
//
// A plain value: thread-compatible.
struct RuleSpec {
  std::string name;
  std::vector<std::pair<std::string, double>> options;

  // The value of an option, if it is given.
  std::optional<double> Find(std::string_view option) const;

  // Gives an option a value, replacing the one it may have.
  void Set(std::string_view option, double value);

  // "SGD(lr=0.1,momentum=0.9)". ParseRuleSpec gives back the same values.
  std::string ToString() const;

  friend bool operator==(const RuleSpec&, const RuleSpec&) = default;
};

// Reads the form that `RuleSpec::ToString` writes. Spaces around names and
// numbers are ignored; "SGD" is the same as "SGD()".
//
// kInvalidArgument: not of that form, or an option appears twice.
absl::StatusOr<RuleSpec> ParseRuleSpec(std::string_view text);

}  // namespace hawser::optim

#endif  // HAWSER_OPTIM_RULE_SPEC_H_
