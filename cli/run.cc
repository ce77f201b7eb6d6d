#include "cli/run.h"

#include <algorithm>

#include "CLI/App.hpp"
#include "CLI/Config.hpp"
#include "CLI/Formatter.hpp"
#include "absl/strings/str_replace.h"
#include "cli/certs.h"
#include "cli/command.h"

namespace hawser::cli {
namespace {

// In the order in which help shows them.
constexpr AddCommand kCommands[] = {
    &AddCerts,
};

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
  CLI::App hawser("Looks after jobs of distributed training.", "hawser");
  hawser.require_subcommand(1);
  for (const AddCommand add : kCommands) add(hawser, context);
  // It takes them from the back.
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    hawser.parse(std::move(reversed));
  } catch (const CLI::ParseError& error) {
    return hawser.exit(error, out, err) == 0 ? 0 : 1;
  }
  if (!context.outcome.ok()) {
    err << "hawser: "
        << absl::StrReplaceAll(absl::string_view(context.outcome.message()),
                               {{"\n", " "}})
        << "\n";
  }
  return ExitCode(context.outcome);
}

}  // namespace hawser::cli
