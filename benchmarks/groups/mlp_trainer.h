// Data-parallel training of a perceptron.

#ifndef HAWSER_BENCHMARKS_GROUPS_MLP_TRAINER_H_
#define HAWSER_BENCHMARKS_GROUPS_MLP_TRAINER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "collectives/process_group.h"
#include "nn/sequential.h"
#include "optim/optimizer.h"
#include "parallel/communication_hooks.h"
#include "parallel/distributed_data_parallel.h"
#include "tensor/tensor.h"

namespace hawser::benchmarks {

struct MlpTrainerOptions {
  // Of the inputs, the hidden layers and the outputs.
  std::vector<int64_t> sizes = {};
  // On each rank.
  int64_t batch = 0;
  parallel::CommunicationHook hook = parallel::AllReduceHook();
};

// The model, with ReLU between its layers, and its batch on one rank: cross
// entropy, SGD, f32, and DistributedDataParallel with its default options. For
// one thread.
class MlpTrainer {
 public:
  // All ranks call this. The group must outlive the object.
  static absl::StatusOr<std::unique_ptr<MlpTrainer>> Create(
      collectives::ProcessGroup& group, const MlpTrainerOptions& options);

  // Trains for one step, with the gradients of all ranks or of this one.
  // Returns the time of the backward pass.
  absl::StatusOr<absl::Duration> Step(bool communicates);

  // Numbers of gradients that are reduced together, in the order of reduction.
  std::vector<int64_t> BucketElements() const;

 private:
  nn::Sequential model_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  std::unique_ptr<parallel::DistributedDataParallel> parallel_;
  tensor::Tensor inputs_;
  tensor::Tensor labels_;
};

}  // namespace hawser::benchmarks

#endif  // HAWSER_BENCHMARKS_GROUPS_MLP_TRAINER_H_
