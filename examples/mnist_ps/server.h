#ifndef HAWSER_EXAMPLES_MNIST_PS_SERVER_H_
#define HAWSER_EXAMPLES_MNIST_PS_SERVER_H_

#include "absl/status/status.h"
#include "examples/mnist_ps/options.h"

namespace hawser::examples::mnist_ps {

// Holds parameters until the job ends. The error of a job that did not end well
// names the worker that was lost.
absl::Status RunServer(const Options& options);

}  // namespace hawser::examples::mnist_ps

#endif  // HAWSER_EXAMPLES_MNIST_PS_SERVER_H_
