#include "cli/usage_error.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/closest_word.h"

namespace hawser::cli {
namespace {

// The subcommands of `command`.
std::vector<const CLI::App*> SubcommandsOf(const CLI::App& command) {
  return command.get_subcommands([](const CLI::App*) { return true; });
}

// The names of the flags of `command`, with "--".
std::vector<std::string> FlagsOf(const CLI::App& command) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      flags.push_back("--" + name);
    }
  }
  return flags;
}

// An unknown subcommand of `command`, whose full name is `path`.
std::string UnknownSubcommand(const CLI::App& command, const std::string& path,
                              const std::string& typed) {
  std::vector<std::string> names;
  for (const CLI::App* subcommand : SubcommandsOf(command)) {
    names.push_back(subcommand->get_name());
    for (const CLI::App* nested : SubcommandsOf(*subcommand)) {
      if (nested->get_name() != typed) continue;
      return absl::StrCat("'", typed, "' is not a subcommand of `", path,
                          "`: did you mean `", path, " ",
                          subcommand->get_name(), " ", typed, "`?");
    }
  }
  const std::optional<std::string> closest = ClosestWord(typed, names);
  return closest.has_value()
             ? absl::StrCat("'", typed, "' is not a subcommand of `", path,
                            "`: did you mean `", path, " ", *closest, "`?")
             : absl::StrCat("'", typed, "' is not a subcommand of `", path,
                            "`, which has ", absl::StrJoin(names, ", "));
}

std::string UnknownFlag(const CLI::App& command, const std::string& path,
                        const std::string& typed) {
  const std::optional<std::string> closest =
      ClosestWord(typed, FlagsOf(command));
  return absl::StrCat("`", path, "` does not have a flag ", typed,
                      closest.has_value()
                          ? absl::StrCat(": did you mean ", *closest, "?")
                          : "");
}

std::string Describe(const CLI::App& command, const std::string& path,
                     const CLI::ParseError& error) {
  const bool has_subcommands = !SubcommandsOf(command).empty();
  for (const std::string& argument : command.remaining()) {
    if (argument.starts_with("-") && argument != "--") {
      return UnknownFlag(command, path, argument.substr(0, argument.find('=')));
    }
    if (has_subcommands) return UnknownSubcommand(command, path, argument);
  }
  if (command.get_require_subcommand_min() == 0) return error.what();
  return absl::StrCat(
      "a subcommand is missing: `", path, "` has ",
      absl::StrJoin(SubcommandsOf(command), ", ",
                    [](std::string* text, const CLI::App* subcommand) {
                      absl::StrAppend(text, subcommand->get_name());
                    }));
}

}  // namespace

std::string DescribeUsageError(const CLI::App& hawser,
                               const CLI::ParseError& error) {
  // The subcommand that the arguments before the error name.
  const CLI::App* command = &hawser;
  std::string path = hawser.get_name();
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    path += " " + command->get_name();
  }
  return absl::StrCat(Describe(*command, path, error), " (see `", path,
                      " --help`)");
}

}  // namespace hawser::cli
