#ifndef HAWSER_TESTS_TRAINING_GOLDEN_H_
#define HAWSER_TESTS_TRAINING_GOLDEN_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "nn/sequential.h"
#include "tensor/tensor.h"

// Results of a small model trained by PyTorch 1.13.1 in f64, step by step
// (tests/testdata/make_training_golden.py). Training must give the same numbers
// for any distribution over workers.
namespace hawser::tests {

// Linear 20-16, ReLU, Linear 16-16, Tanh, Linear 16-5; the mean of the softmax
// cross entropy; SGD. Parameters are "fc1.weight" [16, 20], "fc1.bias" [16],
// "fc2.weight", "fc2.bias", "fc3.weight", "fc3.bias", in this order.
struct TrainingGolden {
  using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

  double lr = 0;
  double momentum = 0;
  NamedTensors start;
  std::vector<Tensor> inputs;    // One per step: f64 [12, 20].
  std::vector<Tensor> labels;    // i64 [12].
  std::vector<double> losses;    // Before the update of the step.
  NamedTensors first_gradients;  // Those of step 0.
  NamedTensors end;              // After the last step.
};

// Reads the file, which must be in the data of the test; fails the test if it
// is missing.
TrainingGolden ReadTrainingGolden();

// The model, with other parameters.
absl::StatusOr<std::unique_ptr<nn::Sequential>> MakeGoldenModel();

}  // namespace hawser::tests

#endif  // HAWSER_TESTS_TRAINING_GOLDEN_H_
