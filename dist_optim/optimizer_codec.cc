#include "dist_optim/optimizer_codec.h"

#include <utility>

#include "optim/rule_codec.h"

namespace hawser::dist_optim {

void WriteState(
    const std::vector<GroupState>& state,
    google::protobuf::RepeatedPtrField<v1::OptimizerRule>& rules,
    google::protobuf::RepeatedPtrField<v1::OptimizerParameterState>& parameters,
    std::vector<Tensor>& tensors) {
  for (const GroupState& group : state) {
    *rules.Add() = optim::ToProto(group.rule);
    for (const optim::ParameterState& parameter : group.parameters) {
      v1::OptimizerParameterState& header = *parameters.Add();
      header.set_step(static_cast<uint64_t>(parameter.step));
      for (const auto& [name, tensor] : parameter.slots) {
        header.add_names(name);
        tensors.push_back(tensor);
      }
    }
  }
}

absl::StatusOr<std::vector<GroupState>> ReadState(
    const google::protobuf::RepeatedPtrField<v1::OptimizerRule>& rules,
    const google::protobuf::RepeatedPtrField<v1::OptimizerParameterState>&
        parameters,
    std::vector<Tensor> tensors, const std::vector<size_t>& group_sizes) {
  const absl::Status misfit = absl::InvalidArgumentError(
      "the state is from an optimizer with different groups or parameters");
  if (static_cast<size_t>(rules.size()) != group_sizes.size()) return misfit;
  std::vector<GroupState> state(group_sizes.size());
  int next_parameter = 0;
  size_t next_tensor = 0;
  for (size_t g = 0; g < group_sizes.size(); ++g) {
    state[g].rule = optim::FromProto(rules[static_cast<int>(g)]);
    for (size_t i = 0; i < group_sizes[g]; ++i) {
      if (next_parameter >= parameters.size()) return misfit;
      const v1::OptimizerParameterState& header = parameters[next_parameter++];
      optim::ParameterState& parameter = state[g].parameters.emplace_back();
      parameter.step = static_cast<int64_t>(header.step());
      for (const std::string& name : header.names()) {
        if (next_tensor >= tensors.size()) return misfit;
        parameter.slots.emplace_back(name, std::move(tensors[next_tensor++]));
      }
    }
  }
  if (next_parameter != parameters.size() || next_tensor != tensors.size()) {
    return misfit;
  }
  return state;
}

}  // namespace hawser::dist_optim
