// The `hawser` command as a function.

#ifndef HAWSER_CLI_RUN_H_
#define HAWSER_CLI_RUN_H_

#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace hawser::cli {

// Runs the subcommand that `arguments`, those after the program's name, name.
// Results and help go to `out`, an error in one
// line to `err`, without control characters. Returns the
// process's exit code: ExitCode's, or 1 where the arguments are wrong.
int Run(const std::vector<std::string>& arguments, std::ostream& out,
        std::ostream& err);

// 0 for OK; 1 for what the user gave wrongly (kInvalidArgument); 3 for a worker
// or server that cannot be reached (kUnavailable); 4 where time ran out
// (kDeadlineExceeded); otherwise 2.
int ExitCode(const absl::Status& status);

}  // namespace hawser::cli

#endif  // HAWSER_CLI_RUN_H_
