#ifndef HAWSER_EXAMPLES_MNIST_PS_LAUNCHER_H_
#define HAWSER_EXAMPLES_MNIST_PS_LAUNCHER_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "examples/mnist_ps/options.h"

namespace hawser::examples::mnist_ps {

// Runs a whole job on this machine. Serves the job's store and starts each
// process of the job as a child that runs `program`, the path of this
// executable, with `arguments`, the flags of this process. Returns when all
// children have ended.
absl::Status RunLauncher(const Options& options, const std::string& program,
                         const std::vector<std::string>& arguments);

}  // namespace hawser::examples::mnist_ps

#endif  // HAWSER_EXAMPLES_MNIST_PS_LAUNCHER_H_
