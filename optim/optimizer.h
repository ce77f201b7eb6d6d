#ifndef HAWSER_OPTIM_OPTIMIZER_H_
#define HAWSER_OPTIM_OPTIMIZER_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "optim/rule_spec.h"
#include "optim/update_rule.h"
#include "tensor/tensor.h"

namespace hawser::optim {

// A group of parameters that share options.
struct ParameterGroup {
  std::vector<Tensor> parameters = {};
  // Options that differ from those of the optimizer.
  std::vector<std::pair<std::string, double>> options = {};
};

// An optimizer that trains parameters with one update rule.
//
//   ASSIGN_OR_RETURN(auto optimizer,
//                    Optimizer::Create(parameters, Sgd({.lr = 0.1})));
//   for (...) {
//     optimizer->ZeroGrad();
//     RETURN_IF_ERROR(autograd::Backward(loss));
//     RETURN_IF_ERROR(optimizer->Step());
//   }
//
// Parameters are handles to tensors, which are updated in place.
// Thread-compatible. A step must not overlap with a forward or backward pass
// that uses the parameters.
class Optimizer {
 public:
  // kInvalidArgument: a group is empty; a parameter is undefined, not a leaf or
  // listed twice; or MakeUpdateRule rejects the rule or an option.
  static absl::StatusOr<std::unique_ptr<Optimizer>> Create(
      std::vector<Tensor> parameters, const RuleSpec& rule);
  static absl::StatusOr<std::unique_ptr<Optimizer>> Create(
      std::vector<ParameterGroup> groups, const RuleSpec& rule);

  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // Adds a group. Errors are those of Create; the group was not added then.
  absl::Status AddGroup(ParameterGroup group);

  // Updates each parameter from its accumulated gradient. A parameter without a
  // gradient, and its state, do not change.
  //
  // Errors are those of UpdateRule::Apply and name the index of the parameter
  // in parameters(). The parameters before it have been updated then.
  absl::Status Step();

  // The same with explicit gradients, in the order of parameters(). Undefined:
  // a parameter without a gradient.
  //
  // kInvalidArgument also if the number of gradients is wrong.
  absl::Status Step(std::span<const Tensor> gradients);

  // Drops the gradients of all parameters.
  void ZeroGrad();

  // The parameters of all groups, in the order of the groups.
  const std::vector<Tensor>& parameters() const { return parameters_; }

  size_t num_groups() const { return groups_.size(); }
  // The rule of a group with its current options.
  const RuleSpec& rule(size_t group) const;
  double learning_rate(size_t group = 0) const;

  // Changes an option, such as "lr", of one group.
  //
  // kInvalidArgument: the group or option does not exist, or the value is out
  // of range.
  absl::Status SetOption(size_t group, std::string_view option, double value);
  // Changes the option of all groups, or of none after an error.
  absl::Status SetOption(std::string_view option, double value);

  // The state of parameter `index` of parameters().
  const ParameterState& state(size_t index) const { return states_[index]; }

  // Number of parameters of a group. parameters() contains the groups one after
  // the other.
  size_t group_size(size_t group) const;

  // Replaces the options of all groups and the state of all parameters, for
  // example from a checkpoint (optimizer_file.h).
  //
  // kInvalidArgument: the number of groups or parameters differs; a rule has
  // another name or invalid options; or a slot does not belong to the rule or
  // does not match the parameter. Nothing was changed then.
  absl::Status Restore(const std::vector<RuleSpec>& rules,
                       std::vector<ParameterState> states);

 private:
  struct Group {
    size_t num_parameters;
    std::unique_ptr<UpdateRule> rule;
  };

  explicit Optimizer(RuleSpec defaults) : defaults_(std::move(defaults)) {}

  absl::StatusOr<std::unique_ptr<UpdateRule>> ChangedRule(
      size_t group, std::string_view option, double value) const;

  const RuleSpec defaults_;
  std::vector<Group> groups_;
  std::vector<Tensor> parameters_;
  std::vector<ParameterState> states_;
};

}  // namespace hawser::optim

#endif  // HAWSER_OPTIM_OPTIMIZER_H_
