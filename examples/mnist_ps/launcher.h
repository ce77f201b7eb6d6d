#ifndef HAWSER_EXAMPLES_MNIST_PS_LAUNCHER_H_
#define HAWSER_EXAMPLES_MNIST_PS_LAUNCHER_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "examples/mnist_ps/options.h"

namespace hawser::examples::mnist_ps {

// Exit code of a process that ended because another one has failed or cannot be
// reached.
inline constexpr int kConsequenceExitCode = 3;

struct JobEnd {
  absl::Status status;
  // The signal that stopped the job; 0 if it ended otherwise.
  int stop_signal = 0;
};

// Runs a whole job on this machine. Serves the job's store and starts each
// process of the job as a child that runs `program`, the path of this
// executable, with `arguments`, the flags of this process. Returns when all
// children have ended. An error names the process that failed first.
JobEnd RunLauncher(const Options& options, const std::string& program,
                   const std::vector<std::string>& arguments);

}  // namespace hawser::examples::mnist_ps

#endif  // HAWSER_EXAMPLES_MNIST_PS_LAUNCHER_H_
