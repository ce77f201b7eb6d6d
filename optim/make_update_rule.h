#ifndef HAWSER_OPTIM_MAKE_UPDATE_RULE_H_
#define HAWSER_OPTIM_MAKE_UPDATE_RULE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "optim/rule_spec.h"
#include "optim/update_rule.h"

namespace hawser::optim {

// Creates the rule that `spec` describes: SGD, Adam, AdamW, SparseAdam, Adamax,
// Adagrad, RowWiseAdagrad, Adadelta, RMSprop, Rprop, FTRL or LAMB.
//
// kInvalidArgument: the name or an option is unknown, or an option is out of
// range.
absl::StatusOr<std::unique_ptr<UpdateRule>> MakeUpdateRule(
    const RuleSpec& spec);

}  // namespace hawser::optim

#endif  // HAWSER_OPTIM_MAKE_UPDATE_RULE_H_
