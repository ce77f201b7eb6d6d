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

// Updates parameters that live on several workers, each where it lives, from
// the gradients of a distributed autograd context.
//
// Thread-safe: steps may overlap, also those of several optimizers over the
// same parameters. Each parameter is then updated by one at a time. Nothing
// orders a step against the forward or backward pass of another trainer; a
// fetch of a parameter gives it as it was between two updates. The parameters
// must not be fetched through another reference made from the same tensor.
//
// Ends the optimizer state on the owners when it goes away.
class DistributedOptimizer {
 public:
  // Parameters that share a rule's options.
  struct ParameterGroup {
    optim::RuleSpec rule;
    std::vector<rref::RRef<Tensor>> parameters;
  };
  // One group per ParameterGroup, with the parameters' states in order.
  using State = std::vector<GroupState>;

  // Makes the parts on all owners, one call to each, at the same time.
  //
  //   kInvalidArgument  no parameter; or an owner found a rule or a parameter
  //                     wrong, naming it: a rule that takes only the gradients
  //                     of rows, such as SparseAdam; a parameter that is not a
  //                     leaf that requires a gradient, is not on the CPU, or
  //                     is given twice.
  //   errors of calls, naming the owner.
  static absl::StatusOr<std::unique_ptr<DistributedOptimizer>> Create(
      rpc::Agent& agent, const optim::RuleSpec& rule,
      std::vector<rref::RRef<Tensor>> parameters);
  static absl::StatusOr<std::unique_ptr<DistributedOptimizer>> Create(
      rpc::Agent& agent, std::vector<ParameterGroup> groups);

  DistributedOptimizer(const DistributedOptimizer&) = delete;
  DistributedOptimizer& operator=(const DistributedOptimizer&) = delete;

  // Applies the gradients of `context`: one call to each owner, at the same
  // time; waits for all. A parameter without a gradient in it stays as it is,
  // as does its state.
  //
  //   kNotFound  the context is not known here, or has ended.
  //   the errors of all owners, named; the code is that of the first. Other
  //   owners have updated their parameters: there is no way back.
  absl::Status Step(dist_autograd::ContextId context) {
    return StepAsync(context).Wait();
  }
  async::Future<void> StepAsync(dist_autograd::ContextId context);

  // Changes an option of a group, or the learning rate of all, for the steps
  // that follow.
  //
  //   kOutOfRange       no such group.
  //   kInvalidArgument  no such option, or a value out of its range.
  absl::Status SetOption(size_t group, std::string_view option, double value);
  absl::Status SetLearningRate(double learning_rate);

  // The state of all parameters: what, besides them, a checkpoint needs.
  absl::StatusOr<State> GetState();
  // kInvalidArgument unless `state` fits; an owner whose part does not fit
  // keeps its own.
  absl::Status SetState(const State& state);

  size_t num_groups() const { return num_groups_; }

 private:
  // The part at one owner.
  struct Part {
    rpc::WorkerInfo owner;
    std::shared_ptr<rref::Reference> optimizer;
    // For each group, which of its parameters are here.
    std::vector<std::vector<size_t>> positions;
  };

  DistributedOptimizer(rpc::Agent& agent, size_t num_groups)
      : agent_(agent), num_groups_(num_groups) {}

  absl::Status CreateParts(const std::vector<ParameterGroup>& groups);
  // Runs `call(part)` for all parts at once; the errors of all, with owners.
  template <class Call>
  async::Future<void> ForEachPart(Call call);

  rpc::Agent& agent_;
  const size_t num_groups_;
  std::vector<Part> parts_;
  // How many parameters each group has.
  std::vector<size_t> group_sizes_;
  std::atomic<uint64_t> next_step_{1};
};

}  // namespace hawser::dist_optim

#endif  // HAWSER_DIST_OPTIM_DISTRIBUTED_OPTIMIZER_H_
