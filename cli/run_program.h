#ifndef HAWSER_CLI_RUN_PROGRAM_H_
#define HAWSER_CLI_RUN_PROGRAM_H_

#include "CLI/App.hpp"
#include "cli/command.h"

namespace hawser::cli {

// The name of the subcommand.
inline constexpr char kRunCommand[] = "run";

// `hawser run`: runs a program as the processes of a distributed job.
void AddRun(CLI::App& hawser, CommandContext& context);

}  // namespace hawser::cli

#endif  // HAWSER_CLI_RUN_PROGRAM_H_
