// Interface between main.cc and the subcommands of `hawser`.

#ifndef HAWSER_CLI_COMMAND_H_
#define HAWSER_CLI_COMMAND_H_

#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "CLI/App.hpp"
#include "absl/status/status.h"

namespace hawser::cli {

// Output and outcome of a subcommand.
struct CommandContext {
  // Receives results, but not errors.
  std::ostream& out;
  // Width of the terminal that shows `out`; 0 if it is not a terminal.
  int columns = 0;
  // A program and its arguments, which follow the flags of a subcommand that
  // runs one (program_arguments.h).
  std::vector<std::string> program = {};
  // Set by the subcommand when it ends.
  absl::Status outcome = absl::OkStatus();
  // The exit code of `hawser`, if it is that of the program and not of the
  // outcome.
  std::optional<int> exit_code = {};
};

// Adds one subcommand to `hawser`. Its callback runs it and sets the outcome in
// `context`, which must outlive `hawser`. Each subcommand has a file; the table
// in run.cc lists them.
using AddCommand = void (*)(CLI::App& hawser, CommandContext& context);

}  // namespace hawser::cli

#endif  // HAWSER_CLI_COMMAND_H_
