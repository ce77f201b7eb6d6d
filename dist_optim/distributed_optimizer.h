#ifndef HAWSER_DIST_OPTIM_DISTRIBUTED_OPTIMIZER_H_
#define HAWSER_DIST_OPTIM_DISTRIBUTED_OPTIMIZER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/future.h"
#include "dist_autograd/ids.h"
#include "dist_optim/owner_optimizer.h"
#include "optim/rule_spec.h"
#include "proto/dist_optim.pb.h"
#include "rpc/agent/agent.h"
#include "rref/rref.h"
#include "tensor/tensor.h"

namespace hawser::dist_optim {

// An optimizer of parameters on several workers, which updates each on its
// owner from the gradients of a distributed autograd context.
//
// Thread-safe: steps may overlap, also those of several optimizers over the
// same parameters. Each parameter is updated by one step at a time. A step is
// not ordered against the forward and backward passes of other trainers. A
// fetch returns a parameter as it was between two updates, and a method
// (rref/method.h) or RRef::Lock gets it so. The parameters must not be used
// through another reference made from the same tensor.
//
// The destructor ends the optimizer state on the owners.
class DistributedOptimizer {
 public:
  // Parameters with the same options of the rule.
  struct ParameterGroup {
    optim::RuleSpec rule;
    std::vector<rref::RRef<Tensor>> parameters;
  };
  // One group per ParameterGroup, with the states of its parameters in order.
  using State = std::vector<GroupState>;

  // Creates the parts on all owners, with one concurrent call to each.
  //
  //   kInvalidArgument  parameters are missing; or an owner refused a rule or a
  //                     parameter, naming it. Refused are a rule that takes
  //                     only the gradients of rows, such as SparseAdam, and a
  //                     parameter that is not a leaf that requires a gradient,
  //                     is not on the CPU, or is given twice.
  //   errors of calls, naming the owner.
  static absl::StatusOr<std::unique_ptr<DistributedOptimizer>> Create(
      rpc::Agent& agent, const optim::RuleSpec& rule,
      std::vector<rref::RRef<Tensor>> parameters);
  static absl::StatusOr<std::unique_ptr<DistributedOptimizer>> Create(
      rpc::Agent& agent, std::vector<ParameterGroup> groups) {
    return CreateAsync(agent, std::move(groups)).Wait();
  }
  static async::Future<std::unique_ptr<DistributedOptimizer>> CreateAsync(
      rpc::Agent& agent, std::vector<ParameterGroup> groups);

  DistributedOptimizer(const DistributedOptimizer&) = delete;
  DistributedOptimizer& operator=(const DistributedOptimizer&) = delete;

  // Applies the gradients of `context`, with one concurrent call to each owner,
  // and waits for all. A parameter without a gradient in the context does not
  // change, and neither does its state.
  //
  //   kNotFound  the context is unknown on this worker or has ended.
  //   the errors of all owners, named; the code is that of the first. The other
  //   owners have updated their parameters, which is not undone.
  absl::Status Step(dist_autograd::ContextId context) {
    return StepAsync(context).Wait();
  }
  async::Future<void> StepAsync(dist_autograd::ContextId context);

  // Changes an option of one group, or the learning rate of all, for later
  // steps.
  //
  //   kOutOfRange       the group does not exist.
  //   kInvalidArgument  the option does not exist, or the value is out of its
  //                     range.
  absl::Status SetOption(size_t group, std::string_view option, double value);
  absl::Status SetLearningRate(double learning_rate);

  // Returns the state of all parameters. A checkpoint needs it together with
  // the parameters.
  absl::StatusOr<State> GetState();
  // kInvalidArgument unless `state` fits. An owner whose part does not fit
  // keeps its own state.
  absl::Status SetState(const State& state);

  size_t num_groups() const { return num_groups_; }

 private:
  // The part on one owner.
  struct Part {
    rpc::WorkerInfo owner;
    std::shared_ptr<rref::Reference> optimizer;
    // For each group, the positions of its parameters on this owner.
    std::vector<std::vector<size_t>> positions;
  };

  DistributedOptimizer(rpc::Agent& agent, size_t num_groups)
      : agent_(agent), num_groups_(num_groups) {}

  async::Future<void> CreateParts(const std::vector<ParameterGroup>& groups);
  // Runs `call(part)` for all parts concurrently. Returns the errors of all,
  // with their owners.
  template <class Call>
  async::Future<void> ForEachPart(Call call);

  rpc::Agent& agent_;
  const size_t num_groups_;
  std::vector<Part> parts_;
  // Number of parameters of each group.
  std::vector<size_t> group_sizes_;
  std::atomic<uint64_t> next_step_{1};
};

}  // namespace hawser::dist_optim

#endif  // HAWSER_DIST_OPTIM_DISTRIBUTED_OPTIMIZER_H_
