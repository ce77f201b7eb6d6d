// Update rules by name.

#ifndef HAWSER_OPTIM_MAKE_UPDATE_RULE_H_
#define HAWSER_OPTIM_MAKE_UPDATE_RULE_H_

#include <functional>
#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "optim/rule_spec.h"
#include "optim/update_rule.h"

namespace hawser::optim {

// Creates the rule that `spec` describes: SGD, Adam, AdamW, SparseAdam, Adamax,
// Adagrad, RowWiseAdagrad, Adadelta, RMSprop, Rprop, FTRL or LAMB, or one that
// the program has registered.
//
// kInvalidArgument: the name is unknown, or an option is unknown or out of
// range. Errors of a registered factory. kInternal: a registered rule has
// another name, or more than kMaxSlots slots, or a wrong one.
absl::StatusOr<std::unique_ptr<UpdateRule>> MakeUpdateRule(
    const RuleSpec& spec);

// Creates a rule of a program. The name in `spec` is the registered one; the
// options may be any: return kInvalidArgument for those that are wrong. The
// rule's spec() must have all options, also those that `spec` does not set, so
// that two descriptions of the same rule become equal.
using UpdateRuleFactory =
    std::function<absl::StatusOr<std::unique_ptr<UpdateRule>>(
        const RuleSpec& spec)>;

// Adds a rule of the program, under `name`, to the rules of this process:
//
//   int main(...) {
//     HAWSER_CHECK(optim::RegisterUpdateRule("SignSGD", MakeSignSgd).ok());
//     // ... Start the worker ...
//   }
//
// Call it before a worker is started: a server of tables creates the rules of
// the tables that it recovers when it starts. Each process that updates
// parameters by the rule needs it, that is, servers of tables and owners of
// distributed parameters; their clients do not. It stays registered until the
// process ends. Thread-safe; the factory must be, too.
//
//   kInvalidArgument  the name is not 1 to 100 letters, digits, '_', '-' and
//                     '.', or there is no factory.
//   kAlreadyExists    a rule has this name.
absl::Status RegisterUpdateRule(std::string_view name,
                                UpdateRuleFactory factory);

// Whether MakeUpdateRule knows a rule of this name.
bool HasUpdateRule(std::string_view name);

}  // namespace hawser::optim

#endif  // HAWSER_OPTIM_MAKE_UPDATE_RULE_H_
