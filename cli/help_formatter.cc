#include "cli/help_formatter.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "telemetry/wrap_text.h"

namespace hawser::cli {
namespace {

// The width of the names, if descriptions stand beside them.
constexpr size_t kNameColumns = 22;
// Narrower descriptions stand below the names.
constexpr size_t kLeastDescriptionColumns = 40;
constexpr size_t kDescriptionIndent = 6;

}  // namespace

std::string HelpFormatter::make_description(const CLI::App* app) const {
  return telemetry::WrapText(app->get_description(), 0, columns_) + "\n";
}

std::string HelpFormatter::make_usage(const CLI::App* app,
                                      std::string name) const {
  return telemetry::WrapText(CLI::Formatter::make_usage(app, std::move(name)),
                             0, columns_);
}

std::string HelpFormatter::make_option(const CLI::Option* option,
                                       bool is_positional) const {
  std::string name =
      is_positional
          ? option->get_name(/*positional=*/true)
          : absl::StrReplaceAll(option->get_name(false, true), {{",", ", "}});
  if (!is_positional && option->get_items_expected_max() != 0) {
    // Validators append their own description, after a colon.
    const std::string type = option->get_type_name();
    absl::StrAppend(&name, "=", type.substr(0, type.find(':')));
  }
  std::string description = option->get_description();
  if (!option->get_default_str().empty()) {
    absl::StrAppend(&description, " Default: ", option->get_default_str(), ".");
  }
  if (!option->get_envname().empty()) {
    absl::StrAppend(&description, " Environment: ", option->get_envname(), ".");
  }
  return Entry(name, description);
}

std::string HelpFormatter::make_subcommand(const CLI::App* subcommand) const {
  return Entry(subcommand->get_name(), subcommand->get_description());
}

std::string HelpFormatter::Entry(const std::string& name,
                                 const std::string& description) const {
  std::string text = absl::StrCat("  ", name);
  if (columns_ < kNameColumns + kLeastDescriptionColumns) {
    return absl::StrCat(
        text, "\n",
        telemetry::WrapText(description, kDescriptionIndent, columns_));
  }
  const std::string wrapped =
      telemetry::WrapText(description, kNameColumns, columns_);
  if (text.size() + 2 > kNameColumns || wrapped.empty()) {
    return absl::StrCat(text, "\n", wrapped);
  }
  return text + wrapped.substr(text.size());
}

}  // namespace hawser::cli
