#include "benchmarks/groups/mlp_trainer.h"

#include <chrono>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "autograd/backward.h"
#include "nn/linear.h"
#include "nn/loss.h"
#include "optim/sgd.h"
#include "tensor/ops/random.h"

namespace hawser::benchmarks {

using tensor::Tensor;

absl::StatusOr<std::unique_ptr<MlpTrainer>> MlpTrainer::Create(
    collectives::ProcessGroup& group, const MlpTrainerOptions& options) {
  auto trainer = std::make_unique<MlpTrainer>();
  tensor::Generator generator(0);
  const std::vector<int64_t>& sizes = options.sizes;
  for (size_t i = 0; i + 1 < sizes.size(); ++i) {
    ASSIGN_OR_RETURN(
        auto layer,
        nn::Linear::Create(
            {.in_features = sizes[i],
             .out_features = sizes[i + 1],
             .activation = i + 2 < sizes.size() ? tensor::Activation::kRelu
                                                : tensor::Activation::kNone},
            generator));
    trainer->model_.Append(absl::StrCat("fc", i), std::move(layer));
  }
  ASSIGN_OR_RETURN(trainer->optimizer_,
                   optim::Optimizer::Create(trainer->model_.parameters(),
                                            optim::Sgd({.lr = 0.01})));
  ASSIGN_OR_RETURN(trainer->parallel_,
                   parallel::DistributedDataParallel::Create(
                       trainer->model_, group, {.hook = options.hook}));
  trainer->inputs_ = Tensor::Full({options.batch, sizes.front()}, 0.5);
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < options.batch; ++i) {
    labels.push_back(i % sizes.back());
  }
  trainer->labels_ = Tensor::FromVector(labels, {options.batch});
  return trainer;
}

absl::StatusOr<absl::Duration> MlpTrainer::Step(bool communicates) {
  optimizer_->ZeroGrad();
  const auto loss = [&]() -> absl::StatusOr<Tensor> {
    ASSIGN_OR_RETURN(const Tensor logits, model_.Forward(inputs_));
    return nn::CrossEntropyLoss(logits, labels_);
  };
  std::optional<parallel::DistributedDataParallel::NoSync> no_sync;
  if (!communicates) no_sync.emplace(*parallel_);
  ASSIGN_OR_RETURN(const Tensor result, parallel_->Forward(loss));
  const auto begin = std::chrono::steady_clock::now();
  RETURN_IF_ERROR(autograd::Backward(result));
  const auto end = std::chrono::steady_clock::now();
  RETURN_IF_ERROR(optimizer_->Step());
  return absl::FromChrono(end - begin);
}

std::vector<int64_t> MlpTrainer::BucketElements() const {
  const std::vector<Tensor> parameters = model_.parameters();
  std::vector<int64_t> elements;
  for (const std::vector<size_t>& bucket : parallel_->buckets()) {
    int64_t sum = 0;
    for (const size_t i : bucket) sum += parameters[i].num_elements();
    elements.push_back(sum);
  }
  return elements;
}

}  // namespace hawser::benchmarks
