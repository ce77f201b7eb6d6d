#ifndef HAWSER_OPTIM_MAKE_UPDATE_RULE_H_
#define HAWSER_OPTIM_MAKE_UPDATE_RULE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "optim/rule_spec.h"
#include "optim/update_rule.h"

namespace hawser::optim {

// Makes the rule that `spec` describes, one of SGD, Adam, AdamW, SparseAdam,
// Adamax, Adagrad, Adadelta, RMSprop, Rprop, FTRL and LAMB.
//
// kInvalidArgument: there is no rule of that name, it has no such option, or an
// option is out of its range.
absl::StatusOr<std::unique_ptr<UpdateRule>> MakeUpdateRule(
    const RuleSpec& spec);

}  // namespace hawser::optim

#endif  // HAWSER_OPTIM_MAKE_UPDATE_RULE_H_
