#include "examples/ctr/model.h"

#include <utility>

#include "absl/status/status.h"
#include "async/status_macros.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/join.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/view.h"
#include "nn/loss.h"
#include "tensor/backend/kernel_types.h"
#include "tensor/ops/random.h"

namespace hawser::examples::ctr {
namespace {

// The sum of the products of all pairs of embeddings of a sample, in time
// linear in their number: half of the difference between the square of their
// sum and the sum of their squares (Rendle, ICDM 2010).
//
//   embeddings  f32[n, keys, width]
//   result      f32[n, 1]
absl::StatusOr<Tensor> SumOfPairs(const Tensor& embeddings) {
  ASSIGN_OR_RETURN(const Tensor sum, autograd::Sum(embeddings, {1}));
  ASSIGN_OR_RETURN(const Tensor square_of_sum, autograd::Square(sum));
  ASSIGN_OR_RETURN(const Tensor squares, autograd::Square(embeddings));
  ASSIGN_OR_RETURN(const Tensor sum_of_squares, autograd::Sum(squares, {1}));
  ASSIGN_OR_RETURN(const Tensor pairs,
                   autograd::Sub(square_of_sum, sum_of_squares));
  ASSIGN_OR_RETURN(const Tensor total,
                   autograd::Sum(pairs, {1}, /*keepdim=*/true));
  return autograd::MulScalar(total, 0.5);
}

}  // namespace

absl::Status ClickModel::Dense::Build(const Options& options) {
  tensor::Generator generator(options.seed);
  const int64_t num_dense = options.width.dense;
  if (num_dense > 0) {
    ASSIGN_OR_RETURN(auto linear, nn::Linear::Create({.in_features = num_dense,
                                                      .out_features = 1,
                                                      .bias = false},
                                                     generator));
    wide = RegisterModule("wide", std::move(linear));
  }
  auto layers = std::make_unique<nn::Sequential>();
  int64_t inputs = num_dense + options.width.keys * options.embedding_width;
  const auto append = [&](int64_t outputs,
                          tensor::Activation activation) -> absl::Status {
    ASSIGN_OR_RETURN(auto layer, nn::Linear::Create({.in_features = inputs,
                                                     .out_features = outputs,
                                                     .activation = activation},
                                                    generator));
    layers->Append(std::move(layer));
    inputs = outputs;
    return absl::OkStatus();
  };
  for (const int64_t outputs : options.hidden) {
    RETURN_IF_ERROR(append(outputs, tensor::Activation::kRelu));
  }
  RETURN_IF_ERROR(append(1, tensor::Activation::kNone));
  deep = RegisterModule("deep", std::move(layers));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ClickModel>> ClickModel::Create(
    const Options& options) {
  std::unique_ptr<ClickModel> model(new ClickModel(options));
  RETURN_IF_ERROR(model->dense_.Build(options));
  return model;
}

std::vector<ps::TableSpec> ClickModel::tables() const {
  ps::TableSpec wide = options_.wide_table;
  wide.width = 1;
  ps::TableSpec deep = options_.deep_table;
  deep.width = options_.embedding_width;
  return {wide, deep};
}

absl::StatusOr<std::vector<Tensor>> ClickModel::Keys(
    const data::SampleBatch& batch) const {
  return std::vector<Tensor>{batch.keys, batch.keys};
}

absl::StatusOr<Tensor> ClickModel::Forward(
    const std::vector<Tensor>& rows, const data::SampleBatch& batch) const {
  ASSIGN_OR_RETURN(const Tensor values, batch.values.Unsqueeze(2));
  ASSIGN_OR_RETURN(const Tensor weights, autograd::Mul(rows[0], values));
  ASSIGN_OR_RETURN(Tensor logits, autograd::Sum(weights, {1}));
  ASSIGN_OR_RETURN(const Tensor embeddings, autograd::Mul(rows[1], values));
  if (options_.deep_fm) {
    ASSIGN_OR_RETURN(const Tensor pairs, SumOfPairs(embeddings));
    ASSIGN_OR_RETURN(logits, autograd::Add(logits, pairs));
  }
  ASSIGN_OR_RETURN(Tensor inputs,
                   autograd::Reshape(embeddings, {batch.size(), -1}));
  if (dense_.wide != nullptr) {
    ASSIGN_OR_RETURN(const Tensor dense, dense_.wide->Forward(batch.dense));
    ASSIGN_OR_RETURN(logits, autograd::Add(logits, dense));
    const Tensor parts[] = {inputs, batch.dense};
    ASSIGN_OR_RETURN(inputs, autograd::Concat(parts, 1));
  }
  ASSIGN_OR_RETURN(const Tensor deep, dense_.deep->Forward(inputs));
  return autograd::Add(logits, deep);
}

absl::StatusOr<Tensor> ClickModel::Loss(const Tensor& predictions,
                                        const std::vector<Tensor>&,
                                        const data::SampleBatch& batch) const {
  return nn::BceWithLogitsLoss(predictions, batch.labels);
}

}  // namespace hawser::examples::ctr
