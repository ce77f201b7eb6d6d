#ifndef HAWSER_EXAMPLES_MNIST_PS_TRAINING_LOOP_H_
#define HAWSER_EXAMPLES_MNIST_PS_TRAINING_LOOP_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "data/labeled_images.h"
#include "examples/mnist_ps/model.h"
#include "examples/mnist_ps/options.h"
#include "telemetry/progress_line.h"
#include "tensor/tensor.h"

namespace hawser::examples::mnist_ps {

// A model in training, with local or remote parameters.
class Learner {
 public:
  virtual ~Learner() = default;

  // Trains one step on `batch`; returns the loss before the step.
  virtual absl::StatusOr<double> Step(const data::Batch& batch) = 0;

  // Applies to later steps.
  virtual absl::Status SetLearningRate(double learning_rate) = 0;

  // The current parameters, in the order of ParameterName.
  virtual absl::StatusOr<std::vector<Tensor>> Parameters() = 0;
};

// Trains options.num_epochs epochs on the share of `train` that belongs to
// trainer number `trainer` of `num_trainers`. The learning rate falls from its
// initial value to nearly 0 along half a cosine, epoch by epoch, so that the
// model converges. `count` is called after each step with its number of
// samples, and returns how many samples all trainers have processed so far.
// Progress is shown on `line`, or with options.log_every as one line per step
// on standard error; `line` null: not at all.
absl::Status Train(Learner& learner, const data::LabeledImages& train,
                   const Options& options, int trainer, int num_trainers,
                   absl::FunctionRef<int64_t(int64_t)> count,
                   telemetry::ProgressLine* line);

// Prints the result of the run to standard output as one line of JSON, with the
// loss rounded to six digits after the point.
// `samples_per_second` counts the samples of all trainers, from the first step
// to the end of the last trainer.
void PrintResult(const Evaluation& evaluation, double samples_per_second);

}  // namespace hawser::examples::mnist_ps

#endif  // HAWSER_EXAMPLES_MNIST_PS_TRAINING_LOOP_H_
