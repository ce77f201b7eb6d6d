#ifndef HAWSER_EXAMPLES_MNIST_PS_TRAINING_LOOP_H_
#define HAWSER_EXAMPLES_MNIST_PS_TRAINING_LOOP_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "data/labeled_images.h"
#include "examples/mnist_ps/options.h"
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

struct TrainingSummary {
  int64_t samples = 0;
  // Mean over the steps of the last epoch.
  double final_loss = 0;
};

// Trains options.num_epochs epochs on the share of `train` that belongs to
// trainer number `trainer` of `num_trainers`. The learning rate falls from its
// initial value to nearly 0 along half a cosine, epoch by epoch, so that the
// model converges. With `show_progress`, prints progress to standard error.
absl::StatusOr<TrainingSummary> Train(Learner& learner,
                                      const data::LabeledImages& train,
                                      const Options& options, int trainer,
                                      int num_trainers, bool show_progress);

// Prints the result of the run to standard output as one line of JSON.
void PrintResult(double test_accuracy, double final_loss,
                 double samples_per_second);

}  // namespace hawser::examples::mnist_ps

#endif  // HAWSER_EXAMPLES_MNIST_PS_TRAINING_LOOP_H_
