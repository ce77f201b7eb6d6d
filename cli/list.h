#ifndef HAWSER_CLI_LIST_H_
#define HAWSER_CLI_LIST_H_

#include "CLI/App.hpp"
#include "cli/command.h"

namespace hawser::cli {

// `hawser list`: shows the workers of a job, or the functions of one worker.
void AddList(CLI::App& hawser, CommandContext& context);

}  // namespace hawser::cli

#endif  // HAWSER_CLI_LIST_H_
