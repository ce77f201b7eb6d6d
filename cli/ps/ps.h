#ifndef HAWSER_CLI_PS_PS_H_
#define HAWSER_CLI_PS_PS_H_

#include "CLI/App.hpp"
#include "cli/command.h"

namespace hawser::cli {

// `hawser ps`: a worker that holds tables, until SIGTERM or SIGINT.
void AddPs(CLI::App& hawser, CommandContext& context);

}  // namespace hawser::cli

#endif  // HAWSER_CLI_PS_PS_H_
