// Optimizer whose state is divided among the ranks of a group.

#ifndef HAWSER_PARALLEL_ZERO_OPTIMIZER_H_
#define HAWSER_PARALLEL_ZERO_OPTIMIZER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "collectives/process_group.h"
#include "optim/optimizer.h"
#include "optim/rule_spec.h"
#include "tensor/io/safetensors.h"
#include "tensor/tensor.h"

namespace hawser::parallel {

using tensor::Tensor;

// Trains parameters that all ranks have, with gradients that are the same on
// all, as after a pass of DistributedDataParallel. Each rank keeps the state of
// a part of the parameters, updates these, and sends them to the others: stage
// 1 of ZeRO (Rajbhandari, Rasley, Ruwase and He, SC 2020). The result is that
// of an optim::Optimizer on every rank.
//
// For one thread at a time.
class ZeroOptimizer {
 public:
  // Called on all ranks with the same parameters and rule. `group` must outlive
  // the object. Errors are those of optim::Optimizer::Create.
  static absl::StatusOr<std::unique_ptr<ZeroOptimizer>> Create(
      std::vector<Tensor> parameters, const optim::RuleSpec& rule,
      collectives::ProcessGroup& group);

  // Called on all ranks. Parameters without a gradient do not change; they must
  // be the same on all ranks. Errors are those of optim::Optimizer::Step and of
  // the group.
  absl::Status Step();

  // Drops the gradients of all parameters.
  void ZeroGrad();

  // As optim::Optimizer::SetOption, on all ranks.
  absl::Status SetOption(std::string_view option, double value);

  // Collects the state of all parameters on rank `to`, for a checkpoint:
  //
  //   ASSIGN_OR_RETURN(const auto state, optimizer->ConsolidateState());
  //   if (group.rank() == 0) {
  //     RETURN_IF_ERROR(tensor::SaveSafetensors(path, state));
  //   }
  //
  // The result is that of optim::GetState (optim/optimizer_file.h) for an
  // optim::Optimizer of all parameters, on the other ranks one without tensors.
  // It may share the memory of the optimizer's state: a snapshot until the next
  // step. Called on all ranks. Errors are those of the group, and
  //
  //   kInvalidArgument  `to` is not a rank.
  absl::StatusOr<tensor::SafetensorsFile> ConsolidateState(int to = 0);

  // Replaces the options and the state of all parameters by those of
  // ConsolidateState, from a group of any size, or of an optim::Optimizer:
  //
  //   ASSIGN_OR_RETURN(const auto state, tensor::LoadSafetensors(path));
  //   RETURN_IF_ERROR(optimizer->SetState(state));
  //
  // Called on all ranks with the same state, of which each keeps its part.
  // Errors are those of optim::SetState, the same on all ranks; nothing was
  // changed then.
  absl::Status SetState(const tensor::SafetensorsFile& state);

  // The rank that has the state of each parameter.
  const std::vector<int>& owners() const { return owners_; }

  // The optimizer of this rank's parameters, in the order of the parameters.
  // Null if it has none.
  const optim::Optimizer* local() const { return local_.get(); }

 private:
  ZeroOptimizer(std::vector<Tensor> parameters, std::vector<int> owners,
                collectives::ProcessGroup& group)
      : parameters_(std::move(parameters)),
        owners_(std::move(owners)),
        group_(group) {}

  // The state of this rank's parameters, named as if it was that of all.
  absl::StatusOr<tensor::SafetensorsFile> OwnState() const;
  absl::Status SendTensors(const tensor::SafetensorsFile& state, int to);
  absl::Status ReceiveTensors(tensor::SafetensorsFile& state, int from);

  const std::vector<Tensor> parameters_;
  const std::vector<int> owners_;
  collectives::ProcessGroup& group_;
  // Of all parameters, without state: checks and keeps the options.
  std::unique_ptr<optim::Optimizer> options_;
  std::unique_ptr<optim::Optimizer> local_;
};

// Divides parameters of these sizes among `ranks`: from the largest to the
// smallest, each to the rank that has the fewest elements so far, of equal ones
// to the lowest.
std::vector<int> AssignOwners(const std::vector<int64_t>& sizes, int ranks);

}  // namespace hawser::parallel

#endif  // HAWSER_PARALLEL_ZERO_OPTIMIZER_H_
