#ifndef HAWSER_EXAMPLES_MNIST_PS_SERVER_H_
#define HAWSER_EXAMPLES_MNIST_PS_SERVER_H_

#include "absl/status/status.h"
#include "examples/mnist_ps/options.h"

namespace hawser::examples::mnist_ps {

// Stores parameters until the job ends. If the job fails because a worker was
// lost, the error names that worker.
absl::Status RunServer(const Options& options);

}  // namespace hawser::examples::mnist_ps

#endif  // HAWSER_EXAMPLES_MNIST_PS_SERVER_H_
