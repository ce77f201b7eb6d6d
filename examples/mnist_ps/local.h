#ifndef HAWSER_EXAMPLES_MNIST_PS_LOCAL_H_
#define HAWSER_EXAMPLES_MNIST_PS_LOCAL_H_

#include "absl/status/status.h"
#include "examples/mnist_ps/options.h"
#include "examples/mnist_ps/stop_signals.h"

namespace hawser::examples::mnist_ps {

// Trains, tests and reports in this process, without servers. The computation
// is the same as in a distributed run.
absl::Status RunLocal(const Options& options, StopSignals& stop);

}  // namespace hawser::examples::mnist_ps

#endif  // HAWSER_EXAMPLES_MNIST_PS_LOCAL_H_
