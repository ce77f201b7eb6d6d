// Interface between main.cc and the subcommands of `hawser`.

#ifndef HAWSER_CLI_COMMAND_H_
#define HAWSER_CLI_COMMAND_H_

#include <ostream>

#include "CLI/App.hpp"
#include "absl/status/status.h"

namespace hawser::cli {

// Output and outcome of a subcommand.
struct CommandContext {
  // Receives results, but not errors.
  std::ostream& out;
  // Width of the terminal that shows `out`; 0 if it is not a terminal.
  int columns = 0;
  // Set by the subcommand when it ends.
  absl::Status outcome = absl::OkStatus();
};

// Adds one subcommand to `hawser`. Its callback runs it and sets the outcome in
// `context`, which must outlive `hawser`. Each subcommand has a file; the table
// in run.cc lists them.
using AddCommand = void (*)(CLI::App& hawser, CommandContext& context);

}  // namespace hawser::cli

#endif  // HAWSER_CLI_COMMAND_H_
