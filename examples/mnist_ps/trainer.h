#ifndef HAWSER_EXAMPLES_MNIST_PS_TRAINER_H_
#define HAWSER_EXAMPLES_MNIST_PS_TRAINER_H_

#include "absl/status/status.h"
#include "examples/mnist_ps/options.h"
#include "examples/mnist_ps/stop_signals.h"

namespace hawser::examples::mnist_ps {

// Trains on this trainer's share of the samples. Trainer 0 also creates the
// parameters at the start, and tests, saves and reports at the end.
absl::Status RunTrainer(const Options& options, StopSignals& stop);

}  // namespace hawser::examples::mnist_ps

#endif  // HAWSER_EXAMPLES_MNIST_PS_TRAINER_H_
