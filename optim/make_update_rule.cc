#include "optim/make_update_rule.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "async/mutex.h"
#include "async/status_macros.h"
#include "optim/adadelta.h"
#include "optim/adagrad.h"
#include "optim/adam.h"
#include "optim/adamax.h"
#include "optim/ftrl.h"
#include "optim/lamb.h"
#include "optim/rmsprop.h"
#include "optim/row_wise_adagrad.h"
#include "optim/rprop.h"
#include "optim/rule_spec.h"
#include "optim/sgd.h"
#include "optim/sparse_adam.h"
#include "optim/update_rule.h"

namespace hawser::optim {
namespace {

constexpr size_t kMaxNameLength = 100;

// The rules of the process, by name.
class Rules {
 public:
  Rules()
      : factories_({{"SGD", MakeSgd},
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
                    {"RowWiseAdagrad", MakeRowWiseAdagrad}}) {}

  // A process has one: rules are code, and that is the process's as well.
  static Rules& Get() {
    static Rules& rules = *new Rules();
    return rules;
  }

  bool Add(std::string_view name, UpdateRuleFactory factory) {
    const async::MutexLock lock(&mutex_);
    return factories_.emplace(name, std::move(factory)).second;
  }

  // Empty: there is none.
  UpdateRuleFactory Find(std::string_view name) const {
    const async::MutexLock lock(&mutex_);
    const auto found = factories_.find(name);
    return found == factories_.end() ? UpdateRuleFactory() : found->second;
  }

  std::vector<std::string> names() const {
    const async::MutexLock lock(&mutex_);
    std::vector<std::string> names;
    for (const auto& [name, factory] : factories_) names.push_back(name);
    return names;
  }

 private:
  mutable async::Mutex mutex_;
  std::map<std::string, UpdateRuleFactory, std::less<>> factories_
      ABSL_GUARDED_BY(mutex_);
};

bool IsNameCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' ||
         c == '-' || c == '.';
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
  const UpdateRuleFactory factory = Rules::Get().Find(spec.name);
  if (factory == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "unknown update rule \"", spec.name, "\"; use one of ",
        absl::StrJoin(Rules::Get().names(), ", "),
        ", or give it to optim::RegisterUpdateRule before the worker of this "
        "process is started"));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<UpdateRule> rule, factory(spec));
  RETURN_IF_ERROR(CheckMade(spec, rule.get()));
  return rule;
}

absl::Status RegisterUpdateRule(std::string_view name,
                                UpdateRuleFactory factory) {
  if (name.empty() || name.size() > kMaxNameLength ||
      !std::all_of(name.begin(), name.end(), IsNameCharacter)) {
    return absl::InvalidArgumentError(
        absl::StrCat("an update rule needs a name of 1 to ", kMaxNameLength,
                     " letters, digits, '_', '-' and '.'"));
  }
  if (factory == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "update rule \"", std::string(name), "\" needs a factory"));
  }
  if (Rules::Get().Add(name, std::move(factory))) return absl::OkStatus();
  return absl::AlreadyExistsError(absl::StrCat(
      "this process has an update rule \"", std::string(name), "\" already"));
}

bool HasUpdateRule(std::string_view name) {
  return Rules::Get().Find(name) != nullptr;
}

}  // namespace hawser::optim
