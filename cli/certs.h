#ifndef HAWSER_CLI_CERTS_H_
#define HAWSER_CLI_CERTS_H_

#include "CLI/App.hpp"
#include "cli/command.h"

namespace hawser::cli {

// `hawser certs init|issue|revoke`: creates and revokes the certificates of a
// job, and creates its token.
void AddCerts(CLI::App& hawser, CommandContext& context);

}  // namespace hawser::cli

#endif  // HAWSER_CLI_CERTS_H_
