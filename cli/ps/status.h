// `hawser ps status`: the servers of tables of a job.

#ifndef HAWSER_CLI_PS_STATUS_H_
#define HAWSER_CLI_PS_STATUS_H_

#include "cli/command.h"

namespace hawser::cli {

void AddPsStatus(CLI::App& ps, CommandContext& context);

}  // namespace hawser::cli

#endif  // HAWSER_CLI_PS_STATUS_H_
