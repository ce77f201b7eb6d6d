#ifndef HAWSER_EXAMPLES_MNIST_PS_MODEL_H_
#define HAWSER_EXAMPLES_MNIST_PS_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "data/labeled_images.h"
#include "nn/sequential.h"

namespace hawser::examples::mnist_ps {

// Linear layers "fc1", "fc2" and "fc3" of widths 784-128-64-10 with ReLU
// between them. Their parameters are drawn with `seed`, or read from the file
// `init_path`, if it is not empty.
absl::StatusOr<std::unique_ptr<nn::Sequential>> MakeModel(
    uint64_t seed, const std::string& init_path);

// Adds the gradients of the mean softmax cross entropy of a batch to those of
// the model. Returns the loss.
absl::StatusOr<double> ForwardAndBackward(const nn::Sequential& model,
                                          const data::Batch& batch);

struct Evaluation {
  // The fraction of samples that the model classifies correctly, in [0, 1].
  double accuracy = 0;
  // The mean loss over the samples.
  double loss = 0;
};

// Applies the model to all samples of `set`, of which there is at least one.
absl::StatusOr<Evaluation> Evaluate(const nn::Sequential& model,
                                    const data::LabeledImages& set);

}  // namespace hawser::examples::mnist_ps

#endif  // HAWSER_EXAMPLES_MNIST_PS_MODEL_H_
