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

// Parameters that share options.
struct ParameterGroup {
  std::vector<Tensor> parameters = {};
  // Those that differ from the optimizer's.
  std::vector<std::pair<std::string, double>> options = {};
};

// Trains parameters with one update rule.
//
//   ASSIGN_OR_RETURN(auto optimizer,
//                    Optimizer::Create(parameters, Sgd({.lr = 0.1})));
//   for (...) {
//     optimizer->ZeroGrad();
//     RETURN_IF_ERROR(autograd::Backward(loss));
//     RETURN_IF_ERROR(optimizer->Step());
//   }
//
// Parameters are handles: they are updated in place. Thread-compatible; a step
// must not overlap with a pass that uses the parameters.
class Optimizer {
 public:
  // kInvalidArgument: no parameters, a parameter undefined, not a leaf or
  // listed twice, or a rule or option that MakeUpdateRule refuses.
  static absl::StatusOr<std::unique_ptr<Optimizer>> Create(
      std::vector<Tensor> parameters, const RuleSpec& rule);
  static absl::StatusOr<std::unique_ptr<Optimizer>> Create(
      std::vector<ParameterGroup> groups, const RuleSpec& rule);

  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // Adds a group; an error, as for Create, adds nothing.
  absl::Status AddGroup(ParameterGroup group);

  // Updates each parameter from the gradient accumulated at it. One without
  // gradient is left alone, and its state does not advance.
  //
  // Fails as UpdateRule::Apply, naming the parameter by its place in
  // parameters(); those before it have been updated.
  absl::Status Step();

  // The same from explicit gradients, in the order of parameters(); an
  // undefined one is no gradient.
  //
  // kInvalidArgument also if their number differs.
  absl::Status Step(std::span<const Tensor> gradients);

  // Drops the gradients of all parameters.
  void ZeroGrad();

  // Of all groups, in the order in which they were given.
  const std::vector<Tensor>& parameters() const { return parameters_; }

  size_t num_groups() const { return groups_.size(); }
  // The rule of a group with its present options.
  const RuleSpec& rule(size_t group) const;
  double learning_rate(size_t group = 0) const;

  // Changes an option, such as "lr", of one group.
  //
  // kInvalidArgument: no such group or option, or a value out of range.
  absl::Status SetOption(size_t group, std::string_view option, double value);
  // Of every group; after an error none has changed.
  absl::Status SetOption(std::string_view option, double value);

  // The state of parameter `index` of parameters().
  const ParameterState& state(size_t index) const { return states_[index]; }

  // Parameters of a group; groups follow each other in parameters().
  size_t group_size(size_t group) const;

  // Replaces the options of every group and the state of every parameter, as a
  // checkpoint has them (optimizer_file.h).
  //
  // kInvalidArgument: their numbers differ from those here, a rule is of
  // another name or refused, or a slot is not one of the rule or does not fit
  // the parameter; nothing was changed.
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
