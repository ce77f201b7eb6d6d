// Command lines that end with another program's command line.

#ifndef HAWSER_CLI_PROGRAM_ARGUMENTS_H_
#define HAWSER_CLI_PROGRAM_ARGUMENTS_H_

#include <string>
#include <vector>

#include "CLI/App.hpp"

namespace hawser::cli {

struct ProgramArguments {
  // The arguments of `hawser`.
  std::vector<std::string> flags;
  // The program and its arguments, unchanged; empty if there are none.
  std::vector<std::string> program;
};

// Divides the arguments of `hawser` at the first one that is neither a flag of
// the subcommand `command` nor its value, or after "--". In names of flags
// before it, "_" becomes "-", as torchrun permits both. Arguments of other
// subcommands stay as they are.
ProgramArguments SplitAtProgram(const CLI::App& command,
                                const std::vector<std::string>& arguments);

}  // namespace hawser::cli

#endif  // HAWSER_CLI_PROGRAM_ARGUMENTS_H_
