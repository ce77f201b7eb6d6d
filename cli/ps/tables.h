// `hawser ps tables`: the tables of a job.

#ifndef HAWSER_CLI_PS_TABLES_H_
#define HAWSER_CLI_PS_TABLES_H_

#include "cli/command.h"

namespace hawser::cli {

void AddPsTables(CLI::App& ps, CommandContext& context);

}  // namespace hawser::cli

#endif  // HAWSER_CLI_PS_TABLES_H_
