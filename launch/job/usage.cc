#include "launch/job/usage.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/flags/commandlineflag.h"
#include "absl/flags/reflection.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "telemetry/wrap_text.h"

namespace hawser::launch {
namespace {

constexpr size_t kDefaultColumns = 80;
constexpr size_t kIndent = 6;

// The default value as it is written on a command line.
std::string DefaultOf(const absl::CommandLineFlag& flag) {
  const std::string value = flag.DefaultValue();
  const bool plain = !value.empty() && !absl::StrContains(value, "(");
  return plain ? value : absl::StrCat("'", value, "'");
}

std::map<std::string, absl::CommandLineFlag*> FlagsByName(
    const std::vector<std::string>& files) {
  std::map<std::string, absl::CommandLineFlag*> flags;
  for (const auto& [name, flag] : absl::GetAllFlags()) {
    const std::string defined_in = flag->Filename();
    if (std::any_of(files.begin(), files.end(), [&](const std::string& file) {
          return absl::EndsWith(defined_in, file);
        })) {
      flags[std::string(name)] = flag;
    }
  }
  return flags;
}

}  // namespace

std::string Usage(const UsageText& text, const std::vector<std::string>& files,
                  int columns) {
  const size_t width =
      columns > 0 ? static_cast<size_t>(columns) : kDefaultColumns;
  const auto wrap = [width](std::string_view words, size_t indent) {
    return telemetry::WrapText(words, indent, width);
  };
  std::string usage = absl::StrCat(wrap(text.summary, 0), "\n");
  for (const std::string& command : text.commands) {
    absl::StrAppend(&usage, wrap(command, 2));
  }
  absl::StrAppend(&usage, "\nFlags with their default values:\n");
  for (const auto& [name, flag] : FlagsByName(files)) {
    absl::StrAppend(&usage, "  --", name, "=", DefaultOf(*flag), "\n",
                    wrap(flag->Help(), kIndent));
  }
  if (!text.results.empty()) {
    absl::StrAppend(&usage,
                    "\nThe result is one line of JSON on standard output:\n");
  }
  for (const auto& [name, meaning] : text.results) {
    absl::StrAppend(&usage, "  ", name, "\n", wrap(meaning, kIndent));
  }
  if (!text.remarks.empty()) {
    absl::StrAppend(&usage, "\n", wrap(text.remarks, 0));
  }
  return usage;
}

}  // namespace hawser::launch
