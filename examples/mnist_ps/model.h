#ifndef HAWSER_EXAMPLES_MNIST_PS_MODEL_H_
#define HAWSER_EXAMPLES_MNIST_PS_MODEL_H_

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "data/labeled_images.h"
#include "examples/mnist_ps/options.h"
#include "tensor/tensor.h"

// The model: linear layers of widths 784-128-64-10 with ReLU between them,
// trained with the mean softmax cross entropy. It is a function of its
// parameters, so that the same code works with local and with fetched ones.
namespace hawser::examples::mnist_ps {

inline constexpr int kNumLayers = 3;
inline constexpr int kNumParameters = 2 * kNumLayers;

// "fc1.weight", "fc1.bias", "fc2.weight", ... Parameter i belongs to layer
// i / 2.
std::string ParameterName(int parameter);
tensor::Shape ParameterShape(int parameter);

// Parameters in the order of ParameterName: read from options.init_path, or
// initialized as torch.nn.Linear does, with options.seed. Errors name the file
// and the tensor that is missing or has another shape or dtype.
absl::StatusOr<std::vector<Tensor>> InitialParameters(const Options& options);

// Writes parameters as a safetensors file.
absl::Status SaveParameters(const std::string& path,
                            std::span<const Tensor> parameters);

// Maps pixels [n, 784] f32 to logits [n, 10].
absl::StatusOr<Tensor> Logits(std::span<const Tensor> parameters,
                              const Tensor& pixels);

// The mean loss of a batch, as a scalar tensor.
absl::StatusOr<Tensor> Loss(std::span<const Tensor> parameters,
                            const data::Batch& batch);

struct Evaluation {
  // The fraction of samples that the model classifies correctly, in [0, 1].
  double accuracy = 0;
  // The mean loss over the samples.
  double loss = 0;
};

// Applies the model to all samples of `set`, of which there is at least one.
absl::StatusOr<Evaluation> Evaluate(std::span<const Tensor> parameters,
                                    const data::LabeledImages& set);

}  // namespace hawser::examples::mnist_ps

#endif  // HAWSER_EXAMPLES_MNIST_PS_MODEL_H_
