#include "optim/optimizer.h"

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "autograd/variable.h"
#include "optim/make_update_rule.h"
#include "optim/rule_spec.h"
#include "optim/update_rule.h"
#include "tensor/tensor.h"

namespace hawser::optim {

absl::StatusOr<std::unique_ptr<Optimizer>> Optimizer::Create(
    std::vector<Tensor> parameters, const RuleSpec& rule) {
  std::vector<ParameterGroup> groups(1);
  groups[0].parameters = std::move(parameters);
  return Create(std::move(groups), rule);
}

absl::StatusOr<std::unique_ptr<Optimizer>> Optimizer::Create(
    std::vector<ParameterGroup> groups, const RuleSpec& rule) {
  if (groups.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(rule.name, ": an optimizer requires parameters"));
  }
  auto optimizer = std::unique_ptr<Optimizer>(new Optimizer(rule));
  for (ParameterGroup& group : groups) {
    RETURN_IF_ERROR(optimizer->AddGroup(std::move(group)));
  }
  return optimizer;
}

absl::Status Optimizer::AddGroup(ParameterGroup group) {
  RuleSpec spec = defaults_;
  for (const auto& [option, value] : group.options) spec.Set(option, value);
  ASSIGN_OR_RETURN(std::unique_ptr<UpdateRule> rule, MakeUpdateRule(spec));

  const std::string where =
      absl::StrCat(spec.name, ": parameter group ", groups_.size());
  if (group.parameters.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(where, " is empty"));
  }
  absl::flat_hash_set<uint64_t> known;
  for (const Tensor& parameter : parameters_) known.insert(parameter.id());
  for (size_t i = 0; i < group.parameters.size(); ++i) {
    const Tensor& parameter = group.parameters[i];
    if (!parameter.defined()) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": parameter ", i, " is undefined"));
    }
    if (!autograd::IsLeaf(parameter)) {
      return absl::InvalidArgumentError(absl::StrCat(
          where, ": parameter ", i, ", ", parameter.ToString(),
          ", is the result of an operation; optimize the tensors it is made "
          "from"));
    }
    if (!known.insert(parameter.id()).second) {
      return absl::InvalidArgumentError(absl::StrCat(where, ": parameter ", i,
                                                     ", ", parameter.ToString(),
                                                     ", is listed twice"));
    }
  }
  groups_.push_back({group.parameters.size(), std::move(rule)});
  parameters_.insert(parameters_.end(), group.parameters.begin(),
                     group.parameters.end());
  states_.resize(parameters_.size());
  return absl::OkStatus();
}

absl::Status Optimizer::Step() {
  std::vector<Tensor> gradients;
  gradients.reserve(parameters_.size());
  for (const Tensor& parameter : parameters_) {
    gradients.push_back(autograd::Grad(parameter));
  }
  return Step(gradients);
}

absl::Status Optimizer::Step(std::span<const Tensor> gradients) {
  if (gradients.size() != parameters_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(defaults_.name, ": ", gradients.size(), " gradients for ",
                     parameters_.size(), " parameters"));
  }
  size_t i = 0;
  for (const Group& group : groups_) {
    const StepOptions options{group.rule->learning_rate()};
    for (const size_t end = i + group.num_parameters; i < end; ++i) {
      if (!gradients[i].defined()) continue;
      absl::Status status =
          group.rule->Apply(parameters_[i], gradients[i], states_[i], options);
      if (!status.ok()) {
        return absl::Status(status.code(), absl::StrCat("parameter ", i, ": ",
                                                        status.message()));
      }
    }
  }
  return absl::OkStatus();
}

void Optimizer::ZeroGrad() {
  for (const Tensor& parameter : parameters_) autograd::ZeroGrad(parameter);
}

const RuleSpec& Optimizer::rule(size_t group) const {
  return groups_[group].rule->spec();
}

double Optimizer::learning_rate(size_t group) const {
  return groups_[group].rule->learning_rate();
}

size_t Optimizer::group_size(size_t group) const {
  return groups_[group].num_parameters;
}

absl::StatusOr<std::unique_ptr<UpdateRule>> Optimizer::ChangedRule(
    size_t group, std::string_view option, double value) const {
  if (group >= groups_.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        defaults_.name, ": parameter group ", group,
        " does not exist; the number of groups is ", groups_.size()));
  }
  RuleSpec spec = rule(group);
  spec.Set(option, value);
  return MakeUpdateRule(spec);
}

absl::Status Optimizer::SetOption(size_t group, std::string_view option,
                                  double value) {
  ASSIGN_OR_RETURN(groups_[group].rule, ChangedRule(group, option, value));
  return absl::OkStatus();
}

absl::Status Optimizer::SetOption(std::string_view option, double value) {
  std::vector<std::unique_ptr<UpdateRule>> rules;
  for (size_t group = 0; group < groups_.size(); ++group) {
    ASSIGN_OR_RETURN(rules.emplace_back(), ChangedRule(group, option, value));
  }
  for (size_t group = 0; group < groups_.size(); ++group) {
    groups_[group].rule = std::move(rules[group]);
  }
  return absl::OkStatus();
}

absl::Status Optimizer::Restore(const std::vector<RuleSpec>& rules,
                                std::vector<ParameterState> states) {
  if (rules.size() != groups_.size() || states.size() != states_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(defaults_.name, ": the state is of ", rules.size(),
                     " groups and ", states.size(), " parameters, not ",
                     groups_.size(), " and ", states_.size()));
  }
  std::vector<std::unique_ptr<UpdateRule>> made;
  size_t i = 0;
  for (size_t group = 0; group < rules.size(); ++group) {
    if (rules[group].name != defaults_.name) {
      return absl::InvalidArgumentError(
          absl::StrCat(defaults_.name, ": the state of group ", group,
                       " is of ", rules[group].name));
    }
    ASSIGN_OR_RETURN(made.emplace_back(), MakeUpdateRule(rules[group]));
    for (const size_t end = i + group_size(group); i < end; ++i) {
      const absl::Status status =
          made.back()->CheckState(parameters_[i], states[i]);
      if (!status.ok()) {
        return absl::Status(status.code(), absl::StrCat("parameter ", i, ": ",
                                                        status.message()));
      }
    }
  }
  for (size_t group = 0; group < made.size(); ++group) {
    groups_[group].rule = std::move(made[group]);
  }
  states_ = std::move(states);
  return absl::OkStatus();
}

}  // namespace hawser::optim
