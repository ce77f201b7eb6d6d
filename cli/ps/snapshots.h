// `hawser ps snapshot` and `hawser ps restore`: snapshots of tables.

#ifndef HAWSER_CLI_PS_SNAPSHOTS_H_
#define HAWSER_CLI_PS_SNAPSHOTS_H_

#include "cli/command.h"

namespace hawser::cli {

void AddPsSnapshot(CLI::App& ps, CommandContext& context);
void AddPsRestore(CLI::App& ps, CommandContext& context);

}  // namespace hawser::cli

#endif  // HAWSER_CLI_PS_SNAPSHOTS_H_
