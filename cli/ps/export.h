// `hawser ps export`: a table of a snapshot as tensors.

#ifndef HAWSER_CLI_PS_EXPORT_H_
#define HAWSER_CLI_PS_EXPORT_H_

#include "cli/command.h"

namespace hawser::cli {

void AddPsExport(CLI::App& ps, CommandContext& context);

}  // namespace hawser::cli

#endif  // HAWSER_CLI_PS_EXPORT_H_
