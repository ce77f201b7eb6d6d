#ifndef HAWSER_EXAMPLES_MNIST_PS_LAUNCHER_H_
#define HAWSER_EXAMPLES_MNIST_PS_LAUNCHER_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "examples/mnist_ps/options.h"

namespace hawser::examples::mnist_ps {

// Runs a whole job on this machine: serves the store at which its processes
// meet and starts each of them as a child of this program, `program`, with the
// flags of this process, `arguments`. Returns when all have ended.
absl::Status RunLauncher(const Options& options, const std::string& program,
                         const std::vector<std::string>& arguments);

}  // namespace hawser::examples::mnist_ps

#endif  // HAWSER_EXAMPLES_MNIST_PS_LAUNCHER_H_
