#include "optim/make_update_rule.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "async/status_macros.h"
#include "optim/adadelta.h"
#include "optim/adagrad.h"
#include "optim/adam.h"
#include "optim/adamax.h"
#include "optim/ftrl.h"
#include "optim/lamb.h"
#include "optim/named_factories.h"
#include "optim/rmsprop.h"
#include "optim/row_wise_adagrad.h"
#include "optim/rprop.h"
#include "optim/rule_spec.h"
#include "optim/sgd.h"
#include "optim/sparse_adam.h"
#include "optim/update_rule.h"

namespace hawser::optim {
namespace {

// A process has one set of rules: they are code, and that is the process's as
// well.
NamedFactories<UpdateRuleFactory>& Rules() {
  static auto& rules = *new NamedFactories<UpdateRuleFactory>(
      "an update rule", {{"SGD", MakeSgd},
                         {"Adam", MakeAdam},
                         {"AdamW", MakeAdamW},
                         {"SparseAdam", MakeSparseAdam},
                         {"Adamax", MakeAdamax},
                         {"Adagrad", MakeAdagrad},
                         {"Adadelta", MakeAdadelta},
                         {"RMSprop", MakeRmsProp},
                         {"Rprop", MakeRprop},
                         {"FTRL", MakeFtrl},
                         {"LAMB", MakeLamb},
                         {"RowWiseAdagrad", MakeRowWiseAdagrad}});
  return rules;
}

// Whether a rule is one that its users can store the state of.
absl::Status CheckMade(const RuleSpec& spec, const UpdateRule* rule) {
  const auto wrong = [&](const std::string& problem) {
    return absl::InternalError(absl::StrCat("the factory of update rule \"",
                                            spec.name, "\" ", problem));
  };
  if (rule == nullptr) return wrong("has returned none");
  if (rule->name() != spec.name) {
    return wrong(absl::StrCat("has returned a rule whose spec has the name \"",
                              std::string(rule->name()), "\""));
  }
  if (rule->slots().size() > kMaxSlots) {
    return wrong(absl::StrCat("has returned a rule with ", rule->slots().size(),
                              " slots, of at most ", kMaxSlots));
  }
  for (size_t i = 0; i < rule->slots().size(); ++i) {
    const Slot& slot = rule->slots()[i];
    if (slot.name.empty() || !std::isfinite(slot.initial) ||
        std::any_of(&rule->slots()[0], &slot,
                    [&](const Slot& s) { return s.name == slot.name; })) {
      return wrong(absl::StrCat(
          "has returned a rule whose slot \"", slot.name,
          "\" needs a name of its own and an initial value that is finite"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<UpdateRule>> MakeUpdateRule(
    const RuleSpec& spec) {
  const UpdateRuleFactory factory = Rules().Find(spec.name);
  if (factory == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "unknown update rule \"", spec.name, "\"; use one of ",
        absl::StrJoin(Rules().names(), ", "),
        ", or give it to optim::RegisterUpdateRule before the worker of this "
        "process is started"));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<UpdateRule> rule, factory(spec));
  RETURN_IF_ERROR(CheckMade(spec, rule.get()));
  return rule;
}

absl::Status RegisterUpdateRule(std::string_view name,
                                UpdateRuleFactory factory) {
  return Rules().Register(name, std::move(factory));
}

bool HasUpdateRule(std::string_view name) {
  return Rules().Find(name) != nullptr;
}

}  // namespace hawser::optim
