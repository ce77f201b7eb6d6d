// Errors in command lines.

#ifndef HAWSER_CLI_USAGE_ERROR_H_
#define HAWSER_CLI_USAGE_ERROR_H_

#include <string>

#include "CLI/App.hpp"
#include "CLI/Error.hpp"

namespace hawser::cli {

// Describes `error`, which the parsing of `hawser` has thrown, in one sentence:
// the wrong or missing argument, the subcommand or flag that may have been
// meant, and the command that shows help.
std::string DescribeUsageError(const CLI::App& hawser,
                               const CLI::ParseError& error);

}  // namespace hawser::cli

#endif  // HAWSER_CLI_USAGE_ERROR_H_
