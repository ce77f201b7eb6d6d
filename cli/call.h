#ifndef HAWSER_CLI_CALL_H_
#define HAWSER_CLI_CALL_H_

#include "CLI/App.hpp"
#include "cli/command.h"

namespace hawser::cli {

// `hawser call`: calls a remote function with arguments in JSON.
void AddCall(CLI::App& hawser, CommandContext& context);

}  // namespace hawser::cli

#endif  // HAWSER_CLI_CALL_H_
