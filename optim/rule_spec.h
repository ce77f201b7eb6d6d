#ifndef HAWSER_OPTIM_RULE_SPEC_H_
#define HAWSER_OPTIM_RULE_SPEC_H_

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace hawser::optim {

// The name and options of an update rule, or of a phase of a ScheduleSpec. Sent
// to other workers and written to files, so that the same rule can be created
// from it.
//
//   RuleSpec{"SGD", {{"lr", 0.1}, {"momentum", 0.9}}}
//
// Names of rules and options are those of PyTorch; a pair becomes two options
// ("beta1", "beta2"). Switches are 0 or 1. Missing options have their defaults.
// The functions of the rules' headers (`Sgd({.lr = 0.1})`) convert options
// structs, whose names the compiler checks. `MakeUpdateRule` checks the values.
//
// A plain value. Thread-compatible.
struct RuleSpec {
  std::string name;
  std::vector<std::pair<std::string, double>> options;

  // The value of an option, if it is set.
  std::optional<double> Find(std::string_view option) const;

  // Sets or replaces the value of an option.
  void Set(std::string_view option, double value);

  // "SGD(lr=0.1,momentum=0.9)". ParseRuleSpec returns exactly these values.
  std::string ToString() const;

  friend bool operator==(const RuleSpec&, const RuleSpec&) = default;
};

// Parses the form that `RuleSpec::ToString` writes. Ignores spaces around names
// and numbers. "SGD" is the same as "SGD()".
//
// kInvalidArgument: `text` is malformed, or an option appears twice.
absl::StatusOr<RuleSpec> ParseRuleSpec(std::string_view text);

}  // namespace hawser::optim

#endif  // HAWSER_OPTIM_RULE_SPEC_H_
