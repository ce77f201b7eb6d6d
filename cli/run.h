// The `hawser` command as a function.

#ifndef HAWSER_CLI_RUN_H_
#define HAWSER_CLI_RUN_H_

#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace hawser::cli {

// Runs the subcommand that `arguments` name. `arguments` do not contain the
// program's name. Writes results and help to `out`, and an error as one line
// without control characters to `err`. `columns` is the width of the terminal
// that shows `out`; 0 if it is not a terminal. Returns the process's exit code:
// that of ExitCode, 1 if the arguments are wrong, or
// that of the program that a subcommand has run.
int Run(const std::vector<std::string>& arguments, std::ostream& out,
        std::ostream& err, int columns = 0);

// 0 for OK; 1 for arguments that are wrong (kInvalidArgument) or name something
// that does not exist (kNotFound); 3 for a worker or server that cannot be
// reached (kUnavailable); 4 for a timeout (kDeadlineExceeded); otherwise 2.
int ExitCode(const absl::Status& status);

}  // namespace hawser::cli

#endif  // HAWSER_CLI_RUN_H_
