#include "examples/mnist_ps/model.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "autograd/backward.h"
#include "autograd/grad_mode.h"
#include "autograd/ops/softmax.h"
#include "nn/linear.h"
#include "nn/module_file.h"
#include "tensor/backend/kernel_types.h"
#include "tensor/ops/random.h"
#include "tensor/ops/reduce.h"
#include "tensor/tensor.h"

namespace hawser::examples::mnist_ps {
namespace {

constexpr std::array<int64_t, 4> kWidths = {784, 128, 64, 10};

}  // namespace

absl::StatusOr<std::unique_ptr<nn::Sequential>> MakeModel(
    uint64_t seed, const std::string& init_path) {
  tensor::Generator generator(seed);
  auto model = std::make_unique<nn::Sequential>();
  for (size_t i = 1; i < kWidths.size(); ++i) {
    const bool last = i + 1 == kWidths.size();
    ASSIGN_OR_RETURN(
        auto layer,
        nn::Linear::Create({.in_features = kWidths[i - 1],
                            .out_features = kWidths[i],
                            .activation = last ? tensor::Activation::kNone
                                               : tensor::Activation::kRelu},
                           generator));
    model->Append(absl::StrCat("fc", i), std::move(layer));
  }
  if (!init_path.empty()) RETURN_IF_ERROR(nn::LoadModule(*model, init_path));
  return model;
}

absl::StatusOr<double> ForwardAndBackward(const nn::Sequential& model,
                                          const data::Batch& batch) {
  ASSIGN_OR_RETURN(const Tensor logits, model.Forward(batch.pixels));
  ASSIGN_OR_RETURN(const Tensor loss,
                   autograd::SoftmaxCrossEntropy(logits, batch.labels));
  RETURN_IF_ERROR(autograd::Backward(loss));
  return loss.item<float>();
}

absl::StatusOr<Evaluation> Evaluate(const nn::Sequential& model,
                                    const data::LabeledImages& set) {
  const autograd::NoGradGuard no_grad;
  constexpr int64_t kBatchSamples = 500;
  int64_t right = 0;
  double loss_sum = 0;
  for (int64_t begin = 0; begin < set.count(); begin += kBatchSamples) {
    const int64_t end = std::min(set.count(), begin + kBatchSamples);
    std::vector<int64_t> indices(static_cast<size_t>(end - begin));
    std::iota(indices.begin(), indices.end(), begin);
    ASSIGN_OR_RETURN(const data::Batch batch, data::GatherBatch(set, indices));
    ASSIGN_OR_RETURN(const Tensor logits, model.Forward(batch.pixels));
    ASSIGN_OR_RETURN(const Tensor guesses, tensor::ArgMax(logits, 1));
    ASSIGN_OR_RETURN(const Tensor loss,
                     autograd::SoftmaxCrossEntropy(logits, batch.labels));
    ASSIGN_OR_RETURN(const double mean, loss.item<float>());
    loss_sum += mean * static_cast<double>(end - begin);
    const int64_t* guess = guesses.data<int64_t>();
    const int64_t* label = batch.labels.data<int64_t>();
    for (int64_t i = 0; i < end - begin; ++i) right += guess[i] == label[i];
  }
  const auto count = static_cast<double>(set.count());
  return Evaluation{static_cast<double>(right) / count, loss_sum / count};
}

}  // namespace hawser::examples::mnist_ps
