// Interface between main.cc and the subcommands of `hawser`.

#ifndef HAWSER_CLI_COMMAND_H_
#define HAWSER_CLI_COMMAND_H_

#include <ostream>

#include "CLI/App.hpp"
#include "absl/status/status.h"

namespace hawser::cli {

// What a subcommand works with, and leaves behind.
struct CommandContext {
  // Results; errors are returned.
  std::ostream& out;
  // How the subcommand ended.
  absl::Status outcome = absl::OkStatus();
};

// Adds one subcommand to `hawser`, whose callback runs it and sets the outcome
// of `context`, which outlives `hawser`. One file each; the table in run.cc
// lists them.
using AddCommand = void (*)(CLI::App& hawser, CommandContext& context);

}  // namespace hawser::cli

#endif  // HAWSER_CLI_COMMAND_H_
