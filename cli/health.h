#ifndef HAWSER_CLI_HEALTH_H_
#define HAWSER_CLI_HEALTH_H_

#include "CLI/App.hpp"
#include "cli/command.h"

namespace hawser::cli {

// `hawser health`: checks that servers accept calls.
void AddHealth(CLI::App& hawser, CommandContext& context);

}  // namespace hawser::cli

#endif  // HAWSER_CLI_HEALTH_H_
