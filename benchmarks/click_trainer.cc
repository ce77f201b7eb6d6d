#include "benchmarks/click_trainer.h"

#include <cmath>
#include <cstdint>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "autograd/backward.h"
#include "autograd/ops/matmul.h"
#include "autograd/variable.h"
#include "launch/worker.h"
#include "nn/loss.h"
#include "optim/optimizer.h"
#include "optim/sgd.h"
#include "ps/embedding.h"
#include "ps/storage/table_spec.h"
#include "ps/table.h"
#include "ps/table_service.h"
#include "store/grpc/store.h"
#include "tensor/ops/random.h"
#include "tensor/tensor.h"

namespace hawser::benchmarks {
namespace {

constexpr double kRate = 0.01;
constexpr size_t kBatches = 16;

absl::StatusOr<Tensor> Parameter(const tensor::Shape& shape,
                                 tensor::Generator& generator) {
  const double bound = 1 / std::sqrt(static_cast<double>(kClickWidth));
  ASSIGN_OR_RETURN(Tensor parameter,
                   tensor::Uniform(shape, -bound, bound, generator));
  RETURN_IF_ERROR(autograd::SetRequiresGrad(parameter));
  return parameter;
}

class Trainer {
 public:
  static absl::StatusOr<std::unique_ptr<Trainer>> Create(ps::Table table,
                                                         int index) {
    auto trainer = std::unique_ptr<Trainer>(new Trainer(std::move(table)));
    tensor::Generator generator(static_cast<uint64_t>(index) + 1);
    for (const tensor::Shape& shape :
         {tensor::Shape{kClickWidth, kClickWidth}, tensor::Shape{kClickWidth},
          tensor::Shape{1, kClickWidth}, tensor::Shape{1}}) {
      ASSIGN_OR_RETURN(Tensor parameter, Parameter(shape, generator));
      trainer->parameters_.push_back(std::move(parameter));
    }
    ASSIGN_OR_RETURN(trainer->optimizer_,
                     optim::Optimizer::Create(trainer->parameters_,
                                              optim::Sgd({.lr = kRate})));
    std::mt19937_64 random(static_cast<uint64_t>(index));
    for (size_t i = 0; i < kBatches; ++i) {
      std::vector<int64_t> ids(kClickBatch * kClickIds);
      for (int64_t& id : ids) {
        id = static_cast<int64_t>(random() % kClickRows);
      }
      ASSIGN_OR_RETURN(Tensor labels,
                       tensor::Uniform({kClickBatch, 1}, 0, 1, generator));
      trainer->ids_.push_back(
          Tensor::FromVector(ids, {kClickBatch, kClickIds}));
      trainer->labels_.push_back(std::move(labels));
    }
    return trainer;
  }

  absl::Status Run(int64_t steps) {
    for (int64_t i = 0; i < steps; ++i) {
      const size_t batch = static_cast<size_t>(i) % kBatches;
      optimizer_->ZeroGrad();
      ASSIGN_OR_RETURN(const Tensor sums, embedding_.Forward(ids_[batch]));
      ASSIGN_OR_RETURN(const Tensor hidden,
                       autograd::Linear(sums, parameters_[0], parameters_[1],
                                        autograd::Activation::kRelu));
      ASSIGN_OR_RETURN(
          const Tensor prediction,
          autograd::Linear(hidden, parameters_[2], parameters_[3]));
      ASSIGN_OR_RETURN(const Tensor loss,
                       nn::MseLoss(prediction, labels_[batch]));
      RETURN_IF_ERROR(autograd::Backward(loss));
      RETURN_IF_ERROR(optimizer_->Step());
    }
    return embedding_.Flush();
  }

 private:
  explicit Trainer(ps::Table table)
      : embedding_(std::move(table), {.pooling = ps::Pooling::kSum}) {}

  ps::Embedding embedding_;
  std::vector<Tensor> parameters_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  std::vector<Tensor> ids_;
  std::vector<Tensor> labels_;
};

absl::Status Serve(const std::string& store_address, int index) {
  ASSIGN_OR_RETURN(const auto store,
                   store::GrpcStore::Connect({.address = store_address}));
  launch::WorkerOptions options;
  options.identity = {.name = absl::StrCat("trainer", index),
                      .rank = 2 + index};
  options.meeting_place.store = store.get();
  options.services.push_back(std::make_unique<ps::TableService>());
  ASSIGN_OR_RETURN(const auto worker,
                   launch::Worker::Start(std::move(options)));
  ASSIGN_OR_RETURN(ps::Table table,
                   ps::Table::Create(worker->agent(), ClickTable(), {"ps0"}));
  ASSIGN_OR_RETURN(const std::unique_ptr<Trainer> trainer,
                   Trainer::Create(std::move(table), index));
  RETURN_IF_ERROR(trainer->Run(10));
  std::cout << "ready" << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    int64_t steps = 0;
    if (!absl::SimpleAtoi(line, &steps)) {
      return absl::InvalidArgumentError(absl::StrCat("steps: ", line));
    }
    RETURN_IF_ERROR(trainer->Run(steps));
    std::cout << "done" << std::endl;
  }
  return worker->Shutdown(/*graceful=*/false);
}

}  // namespace

ps::TableSpec ClickTable() {
  return {.name = "clicks",
          .width = kClickWidth,
          .rule = optim::Sgd({.lr = kRate}),
          .initializer = ps::Initializer::Normal(0, 1)};
}

int TrainClicks(const std::string& store_address, int index) {
  const absl::Status status = Serve(store_address, index);
  if (status.ok()) return 0;
  std::cerr << "ps: trainer: " << status.message() << std::endl;
  return 1;
}

}  // namespace hawser::benchmarks
