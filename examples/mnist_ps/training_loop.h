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

// A model in training, wherever its parameters are.
class Learner {
 public:
  virtual ~Learner() = default;

  // Moves the parameters by one step on `batch`; returns the loss before it.
  virtual absl::StatusOr<double> Step(const data::Batch& batch) = 0;

  // Of the steps that follow.
  virtual absl::Status SetLearningRate(double learning_rate) = 0;

  // The parameters as they are now, in the order of ParameterName.
  virtual absl::StatusOr<std::vector<Tensor>> Parameters() = 0;
};

struct TrainingSummary {
  int64_t samples = 0;
  // Mean over the steps of the last epoch.
  double final_loss = 0;
};

// Runs options.num_epochs over this trainer's share of `train`, the share of
// number `trainer` of `num_trainers`. The learning rate falls from the rule's
// own along half a cosine, epoch by epoch, to nearly 0: steps of the size of
// the first would leave the model wherever the last of them threw it. With
// `show_progress` tells on standard error how it goes.
absl::StatusOr<TrainingSummary> Train(Learner& learner,
                                      const data::LabeledImages& train,
                                      const Options& options, int trainer,
                                      int num_trainers, bool show_progress);

// Prints the run's result as one JSON line on standard output.
void PrintResult(double test_accuracy, double final_loss,
                 double samples_per_second);

}  // namespace hawser::examples::mnist_ps

#endif  // HAWSER_EXAMPLES_MNIST_PS_TRAINING_LOOP_H_
