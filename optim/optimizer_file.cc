#include "optim/optimizer_file.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "optim/make_update_rule.h"
#include "optim/optimizer.h"
#include "optim/rule_spec.h"
#include "optim/update_rule.h"
#include "tensor/dtype.h"
#include "tensor/io/safetensors.h"
#include "tensor/tensor.h"

namespace hawser::optim {
namespace {

using tensor::SafetensorsFile;

std::string StateName(size_t parameter, std::string_view slot) {
  return absl::StrCat("state.", parameter, ".", std::string(slot));
}

absl::StatusOr<std::string> Entry(const SafetensorsFile& state,
                                  const std::string& key) {
  const auto found = state.metadata.find(key);
  if (found != state.metadata.end()) return found->second;
  return absl::InvalidArgumentError(absl::StrCat(
      "the state of the optimizer is malformed: ", key, " is missing"));
}

// Checks that an entry is `expected`.
absl::Status CheckCount(const SafetensorsFile& state, const std::string& key,
                        size_t expected) {
  ASSIGN_OR_RETURN(const std::string text, Entry(state, key));
  if (text == absl::StrCat(expected)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the state is of another optimizer: ", key, " is ", text,
                   ", not ", expected));
}

absl::StatusOr<std::vector<RuleSpec>> ReadRules(const Optimizer& optimizer,
                                                const SafetensorsFile& state) {
  RETURN_IF_ERROR(CheckCount(state, "groups", optimizer.num_groups()));
  std::vector<RuleSpec> rules;
  for (size_t group = 0; group < optimizer.num_groups(); ++group) {
    const std::string prefix = absl::StrCat("group.", group);
    RETURN_IF_ERROR(
        CheckCount(state, prefix + ".parameters", optimizer.group_size(group)));
    ASSIGN_OR_RETURN(const std::string text, Entry(state, prefix + ".rule"));
    ASSIGN_OR_RETURN(rules.emplace_back(), ParseRuleSpec(text));
  }
  return rules;
}

// Splits "state.<index>.<slot>".
struct SlotPlace {
  size_t parameter;
  std::string slot;
};
absl::StatusOr<SlotPlace> ReadPlace(const std::string& name,
                                    size_t num_parameters) {
  constexpr std::string_view kPrefix = "state.";
  const size_t dot = name.find('.', kPrefix.size());
  uint64_t parameter;
  if (name.compare(0, kPrefix.size(), kPrefix) != 0 ||
      dot == std::string::npos ||
      !absl::SimpleAtoi(name.substr(kPrefix.size(), dot - kPrefix.size()),
                        &parameter) ||
      parameter >= num_parameters) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the state has a tensor \"", name, "\" that does not belong to any of ",
        num_parameters, " parameters"));
  }
  return SlotPlace{static_cast<size_t>(parameter), name.substr(dot + 1)};
}

absl::StatusOr<int64_t> ReadStep(const std::string& name,
                                 const Tensor& tensor) {
  if (!tensor.defined() || tensor.dtype() != tensor::DType::kI64) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " must be an i64, not ",
                     tensor.defined() ? tensor.ToString() : "undefined"));
  }
  return tensor.item<int64_t>();
}

absl::StatusOr<std::vector<ParameterState>> ReadStates(
    size_t num_parameters, const SafetensorsFile& state) {
  std::vector<ParameterState> states(num_parameters);
  for (const auto& [name, tensor] : state.tensors) {
    ASSIGN_OR_RETURN(SlotPlace place, ReadPlace(name, num_parameters));
    ParameterState& target = states[place.parameter];
    if (place.slot == "step") {
      ASSIGN_OR_RETURN(target.step, ReadStep(name, tensor));
      continue;
    }
    ASSIGN_OR_RETURN(Tensor copy, tensor.Clone());
    target.slots.emplace_back(std::move(place.slot), std::move(copy));
  }
  return states;
}

// Sorts slots, which may have any order in a file, in the order of the rules.
absl::Status SortSlots(const Optimizer& optimizer,
                       const std::vector<RuleSpec>& rules,
                       std::vector<ParameterState>& states) {
  size_t i = 0;
  for (size_t group = 0; group < rules.size(); ++group) {
    ASSIGN_OR_RETURN(const auto rule, MakeUpdateRule(rules[group]));
    for (const size_t end = i + optimizer.group_size(group); i < end; ++i) {
      const auto place = [&](const auto& slot) {
        size_t at = 0;
        while (at < rule->slots().size() &&
               rule->slots()[at].name != slot.first) {
          ++at;
        }
        return at;
      };
      std::stable_sort(
          states[i].slots.begin(), states[i].slots.end(),
          [&](const auto& a, const auto& b) { return place(a) < place(b); });
    }
  }
  return absl::OkStatus();
}

}  // namespace

SafetensorsFile GetState(const Optimizer& optimizer) {
  SafetensorsFile state;
  for (size_t i = 0; i < optimizer.parameters().size(); ++i) {
    const ParameterState& kept = optimizer.state(i);
    if (kept.step == 0) continue;
    for (const auto& [slot, tensor] : kept.slots) {
      state.tensors.emplace_back(StateName(i, slot), tensor);
    }
    state.tensors.emplace_back(StateName(i, "step"),
                               Tensor::FromVector<int64_t>({kept.step}, {}));
  }
  state.metadata["groups"] = absl::StrCat(optimizer.num_groups());
  for (size_t group = 0; group < optimizer.num_groups(); ++group) {
    const std::string prefix = absl::StrCat("group.", group);
    state.metadata[prefix + ".rule"] = optimizer.rule(group).ToString();
    state.metadata[prefix + ".parameters"] =
        absl::StrCat(optimizer.group_size(group));
  }
  return state;
}

absl::Status SetState(Optimizer& optimizer, const SafetensorsFile& state) {
  ASSIGN_OR_RETURN(const std::vector<RuleSpec> rules,
                   ReadRules(optimizer, state));
  ASSIGN_OR_RETURN(std::vector<ParameterState> states,
                   ReadStates(optimizer.parameters().size(), state));
  RETURN_IF_ERROR(SortSlots(optimizer, rules, states));
  return optimizer.Restore(rules, std::move(states));
}

absl::Status SaveOptimizer(const Optimizer& optimizer, std::string_view path) {
  return tensor::SaveSafetensors(path, GetState(optimizer));
}

absl::Status LoadOptimizer(Optimizer& optimizer, std::string_view path) {
  ASSIGN_OR_RETURN(const SafetensorsFile state, tensor::LoadSafetensors(path));
  const absl::Status status = SetState(optimizer, state);
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat(std::string(path), ": ", status.message()));
}

}  // namespace hawser::optim
