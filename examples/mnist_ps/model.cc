#include "examples/mnist_ps/model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "autograd/grad_mode.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/softmax.h"
#include "tensor/io/safetensors.h"
#include "tensor/ops/random.h"
#include "tensor/ops/reduce.h"

namespace hawser::examples::mnist_ps {
namespace {

constexpr std::array<int64_t, kNumLayers + 1> kWidths = {784, 128, 64, 10};

absl::StatusOr<std::vector<Tensor>> LoadParameters(const std::string& path) {
  ASSIGN_OR_RETURN(const tensor::SafetensorsFile file,
                   tensor::LoadSafetensors(path));
  std::vector<Tensor> parameters;
  for (int i = 0; i < kNumParameters; ++i) {
    const std::string name = ParameterName(i);
    const auto found =
        std::find_if(file.tensors.begin(), file.tensors.end(),
                     [&](const auto& entry) { return entry.first == name; });
    if (found == file.tensors.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, " does not contain the tensor ", name));
    }
    const Tensor& value = found->second;
    if (value.shape() != ParameterShape(i) ||
        value.dtype() != tensor::DType::kF32) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": ", name, " is ", value.ToString(),
          ", but this model requires f32", ParameterShape(i).ToString()));
    }
    parameters.push_back(value);
  }
  return parameters;
}

}  // namespace

std::string ParameterName(int parameter) {
  return absl::StrCat("fc", parameter / 2 + 1,
                      parameter % 2 == 0 ? ".weight" : ".bias");
}

tensor::Shape ParameterShape(int parameter) {
  const auto layer = static_cast<size_t>(parameter / 2);
  if (parameter % 2 == 1) return {kWidths[layer + 1]};
  return {kWidths[layer + 1], kWidths[layer]};
}

absl::StatusOr<std::vector<Tensor>> InitialParameters(const Options& options) {
  if (!options.init_path.empty()) return LoadParameters(options.init_path);
  tensor::Generator generator(options.seed);
  std::vector<Tensor> parameters;
  for (int i = 0; i < kNumParameters; ++i) {
    const auto fan_in =
        static_cast<double>(kWidths[static_cast<size_t>(i / 2)]);
    const double bound = 1 / std::sqrt(fan_in);
    ASSIGN_OR_RETURN(Tensor value, tensor::Uniform(ParameterShape(i), -bound,
                                                   bound, generator));
    parameters.push_back(std::move(value));
  }
  return parameters;
}

absl::Status SaveParameters(const std::string& path,
                            std::span<const Tensor> parameters) {
  tensor::SafetensorsFile file;
  for (int i = 0; i < kNumParameters; ++i) {
    file.tensors.emplace_back(ParameterName(i),
                              parameters[static_cast<size_t>(i)]);
  }
  return tensor::SaveSafetensors(path, file);
}

absl::StatusOr<Tensor> Logits(std::span<const Tensor> parameters,
                              const Tensor& pixels) {
  Tensor x = pixels;
  for (size_t layer = 0; layer < kNumLayers; ++layer) {
    const auto activation = layer + 1 < kNumLayers
                                ? autograd::Activation::kRelu
                                : autograd::Activation::kNone;
    ASSIGN_OR_RETURN(
        x, autograd::Linear(x, parameters[2 * layer], parameters[2 * layer + 1],
                            activation));
  }
  return x;
}

absl::StatusOr<Tensor> Loss(std::span<const Tensor> parameters,
                            const data::Batch& batch) {
  ASSIGN_OR_RETURN(const Tensor logits, Logits(parameters, batch.pixels));
  return autograd::SoftmaxCrossEntropy(logits, batch.labels);
}

absl::StatusOr<Evaluation> Evaluate(std::span<const Tensor> parameters,
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
    ASSIGN_OR_RETURN(const Tensor logits, Logits(parameters, batch.pixels));
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
