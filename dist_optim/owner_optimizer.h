#ifndef HAWSER_DIST_OPTIM_OWNER_OPTIMIZER_H_
#define HAWSER_DIST_OPTIM_OWNER_OPTIMIZER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/executor.h"
#include "async/future.h"
#include "async/mutex.h"
#include "optim/rule_spec.h"
#include "optim/update_rule.h"
#include "rref/owner_value.h"
#include "tensor/tensor.h"

namespace hawser::dist_optim {

// A parameter on its owner, with the lock that prevents updates during fetches.
struct OwnedParameter {
  Tensor tensor;
  std::shared_ptr<rref::OwnerValue> value;
};

// State of one group of parameters.
struct GroupState {
  // The rule with its current options.
  optim::RuleSpec rule;
  // One state per parameter, in order.
  std::vector<optim::ParameterState> parameters;
};

// The part of a distributed optimizer on the owner of some parameters.
//
// Steps may overlap. Each parameter is updated by one step at a time, and not
// while it is being sent. Thread-safe.
class OwnerOptimizer : public std::enable_shared_from_this<OwnerOptimizer> {
 public:
  // Name of the type in references.
  static constexpr std::string_view kTypeName =
      "hawser.dist_optim.OwnerOptimizer";

  struct Group {
    optim::RuleSpec rule;
    std::vector<OwnedParameter> parameters;
  };
  // The gradient of a parameter; undefined if it has none.
  using GradientOf = absl::AnyInvocable<Tensor(const Tensor& parameter)>;

  // Number of steps to remember, so that a repeated step is not applied again.
  static constexpr size_t kMaxSteps = 64;

  // kInvalidArgument, naming group and position: a rule is wrong or takes only
  // the gradients of rows; or a parameter is undefined, is not a leaf that
  // requires a gradient, is not on the CPU, or is given twice.
  static absl::StatusOr<std::shared_ptr<OwnerOptimizer>> Create(
      std::vector<Group> groups);

  // Updates each parameter that has a gradient, once it is not being read.
  // Other parameters and their states do not change. Returns the number of
  // updated parameters. After an error, which names the parameter, the others
  // are still updated.
  //
  // A repeated `step` returns its first result. kAborted if it is too old to be
  // remembered.
  //
  // `executor` runs the arithmetic, in parallel, unless there is little of it:
  // gradients of up to 2 MiB in total are applied in this call.
  async::Future<uint64_t> Step(uint64_t step, GradientOf gradient_of,
                               async::Executor& executor);

  // Applies to steps that start later.
  //
  //   kOutOfRange       the group does not exist.
  //   kInvalidArgument  the option does not exist, or the value is out of its
  //                     range.
  absl::Status SetOption(size_t group, std::string_view option, double value);

  // The state of each parameter between two of its updates. Tensors are copies.
  async::Future<std::vector<GroupState>> GetState();
  // kInvalidArgument, without a change, unless `state` fits the groups and
  // parameters.
  async::Future<void> SetState(std::vector<GroupState> state);

  std::vector<size_t> group_sizes() const;

 private:
  struct Parameter {
    OwnedParameter owned;
    // Guarded by the exclusive lock of `owned.value`.
    optim::ParameterState state;
  };
  struct GroupEntry {
    // Constant; a change of options replaces it.
    std::shared_ptr<const optim::UpdateRule> rule;
    std::vector<std::unique_ptr<Parameter>> parameters;
  };

  OwnerOptimizer() = default;

  // The update of one parameter.
  struct Work {
    Parameter* parameter = nullptr;
    // For errors.
    std::string name;
    std::shared_ptr<const optim::UpdateRule> rule;
    Tensor gradient;
  };
  // `here`: in this call, unless the parameter is in use.
  async::Future<void> Update(Work work, async::Executor& executor, bool here);
  std::vector<std::shared_ptr<const optim::UpdateRule>> Rules() const;

  mutable async::Mutex mutex_;
  // The parameters in it are constant after Create.
  std::vector<GroupEntry> groups_;
  // Results of the last steps.
  std::map<uint64_t, async::Future<uint64_t>> steps_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::dist_optim

#endif  // HAWSER_DIST_OPTIM_OWNER_OPTIMIZER_H_
