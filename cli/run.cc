#include "cli/run.h"

#include <algorithm>
#include <iterator>

#include "CLI/App.hpp"
#include "CLI/Config.hpp"
#include "CLI/Formatter.hpp"
#include "absl/strings/ascii.h"
#include "cli/call.h"
#include "cli/certs.h"
#include "cli/command.h"
#include "cli/escape_for_terminal.h"
#include "cli/health.h"
#include "cli/list.h"

namespace hawser::cli {
namespace {

// In the order in which help shows them.
constexpr AddCommand kCommands[] = {
    &AddCall,
    &AddList,
    &AddHealth,
    &AddCerts,
};

// Protects a JSON value from CLI11, which splits "[1, 2]" into two arguments
// and reads "-1" as a flag. JSON permits the space before a value.
std::string AsValue(const std::string& argument) {
  const bool is_negative = argument.size() > 1 && argument[0] == '-' &&
                           absl::ascii_isdigit(argument[1]);
  return is_negative || argument.starts_with("[") ? " " + argument : argument;
}

}  // namespace

int ExitCode(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return 0;
    case absl::StatusCode::kInvalidArgument:
      return 1;
    case absl::StatusCode::kUnavailable:
      return 3;
    case absl::StatusCode::kDeadlineExceeded:
      return 4;
    default:
      return 2;
  }
}

int Run(const std::vector<std::string>& arguments, std::ostream& out,
        std::ostream& err) {
  CommandContext context{.out = out};
  CLI::App hawser("Inspects and administers distributed training jobs.",
                  "hawser");
  hawser.require_subcommand(1);
  for (const AddCommand add : kCommands) add(hawser, context);
  // CLI11 reads the arguments from the back.
  std::vector<std::string> reversed;
  std::transform(arguments.rbegin(), arguments.rend(),
                 std::back_inserter(reversed), &AsValue);
  try {
    hawser.parse(std::move(reversed));
  } catch (const CLI::ParseError& error) {
    return hawser.exit(error, out, err) == 0 ? 0 : 1;
  }
  if (!context.outcome.ok()) {
    const absl::string_view message = context.outcome.message();
    err << "hawser: " << EscapeForTerminal({message.data(), message.size()})
        << "\n";
  }
  return ExitCode(context.outcome);
}

}  // namespace hawser::cli
