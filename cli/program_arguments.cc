#include "cli/program_arguments.h"

#include <algorithm>
#include <cstddef>

#include "CLI/Option.hpp"

namespace hawser::cli {
namespace {

// The flag with "-" instead of "_" in its name.
std::string Normalized(std::string flag) {
  std::replace(flag.begin(),
               flag.begin() + static_cast<std::ptrdiff_t>(
                                  std::min(flag.find('='), flag.size())),
               '_', '-');
  return flag;
}

bool TakesValue(const CLI::App& command, const std::string& flag) {
  const CLI::Option* option = command.get_option_no_throw(flag);
  // An unknown flag is an error of the parser.
  return option != nullptr && option->get_items_expected_max() != 0;
}

}  // namespace

ProgramArguments SplitAtProgram(const CLI::App& command,
                                const std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments[0] != command.get_name()) {
    return {arguments, {}};
  }
  ProgramArguments split;
  split.flags.push_back(arguments[0]);
  size_t i = 1;
  for (; i < arguments.size() && arguments[i].starts_with("-"); ++i) {
    if (arguments[i] == "--") {
      ++i;
      break;
    }
    split.flags.push_back(Normalized(arguments[i]));
    const bool has_value = arguments[i].find('=') != std::string::npos;
    if (!has_value && i + 1 < arguments.size() &&
        TakesValue(command, split.flags.back())) {
      split.flags.push_back(arguments[++i]);
    }
  }
  split.program.assign(arguments.begin() + static_cast<std::ptrdiff_t>(i),
                       arguments.end());
  return split;
}

}  // namespace hawser::cli
