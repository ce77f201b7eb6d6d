#include "cli/run.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>

#include "CLI/App.hpp"
#include "CLI/Config.hpp"
#include "CLI/Formatter.hpp"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "cli/call.h"
#include "cli/certs.h"
#include "cli/command.h"
#include "cli/escape_for_terminal.h"
#include "cli/health.h"
#include "cli/help_formatter.h"
#include "cli/list.h"
#include "cli/program_arguments.h"
#include "cli/ps/ps.h"
#include "cli/run_program.h"
#include "cli/usage_error.h"
#include "grpcpp/grpcpp.h"

namespace hawser::cli {
namespace {

// In the order in which help shows them.
constexpr AddCommand kCommands[] = {
    &AddRun, &AddCall, &AddList, &AddHealth, &AddPs, &AddCerts,
};

// The width of help that is not shown on a terminal.
constexpr int kDefaultColumns = 80;

// The latest version in CHANGELOG.md.
constexpr char kVersion[] = "unreleased";

// Protects a JSON value from CLI11, which splits "[1, 2]" into two arguments
// and reads "-1" as a flag. JSON permits the space before a value.
std::string AsValue(const std::string& argument) {
  const bool is_negative = argument.size() > 1 && argument[0] == '-' &&
                           absl::ascii_isdigit(argument[1]);
  return is_negative || argument.starts_with("[") ? " " + argument : argument;
}

void PrintError(const std::string& message, std::ostream& err) {
  err << "hawser: " << EscapeForTerminal(message) << "\n";
}

}  // namespace

int ExitCode(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return 0;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
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
        std::ostream& err, int columns) {
  CommandContext context{.out = out, .columns = columns};
  CLI::App hawser("Runs, inspects and administers distributed training jobs.",
                  "hawser");
  hawser.formatter(std::make_shared<HelpFormatter>(
      static_cast<size_t>(columns > 0 ? columns : kDefaultColumns)));
  hawser.set_help_flag("-h,--help", "Show this help.");
  hawser.set_version_flag(
      "--version",
      absl::StrCat("hawser ", kVersion, " (gRPC ", grpc::Version(), ")"),
      "Show the version.");
  hawser.require_subcommand(1);
  for (const AddCommand add : kCommands) add(hawser, context);
  const ProgramArguments split =
      SplitAtProgram(*hawser.get_subcommand(kRunCommand), arguments);
  context.program = split.program;
  // CLI11 reads the arguments from the back.
  std::vector<std::string> reversed;
  std::transform(split.flags.rbegin(), split.flags.rend(),
                 std::back_inserter(reversed), &AsValue);
  try {
    hawser.parse(std::move(reversed));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return hawser.exit(error, out, err);
    PrintError(DescribeUsageError(hawser, error), err);
    return 1;
  }
  if (!context.outcome.ok()) {
    PrintError(std::string(context.outcome.message()), err);
  }
  return context.exit_code.value_or(ExitCode(context.outcome));
}

}  // namespace hawser::cli
