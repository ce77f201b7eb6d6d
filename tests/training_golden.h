#ifndef HAWSER_TESTS_TRAINING_GOLDEN_H_
#define HAWSER_TESTS_TRAINING_GOLDEN_H_

#include <string>
#include <utility>
#include <vector>

#include "tensor/tensor.h"

// A small model trained by PyTorch 1.13.1, step by step, in f64
// (tests/testdata/make_training_golden.py). However the work is divided among
// workers, the same numbers must come out.
namespace hawser::tests {

// Linear 20-16, ReLU, Linear 16-16, Tanh, Linear 16-5; the mean of the softmax
// cross entropy; SGD. Parameters are "fc1.weight" [16, 20], "fc1.bias" [16],
// "fc2.weight", "fc2.bias", "fc3.weight", "fc3.bias", in this order.
struct TrainingGolden {
  using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

  double lr = 0;
  double momentum = 0;
  NamedTensors start;
  std::vector<Tensor> inputs;    // Of each step: f64 [12, 20].
  std::vector<Tensor> labels;    // i64 [12].
  std::vector<double> losses;    // Before the update of the step.
  NamedTensors first_gradients;  // Of step 0.
  NamedTensors end;              // After the last step.
};

// Reads the file, which the test must have among its data; fails the test if
// it is not there.
TrainingGolden ReadTrainingGolden();

}  // namespace hawser::tests

#endif  // HAWSER_TESTS_TRAINING_GOLDEN_H_
