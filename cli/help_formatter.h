// Layout of the help of `hawser` and its subcommands.

#ifndef HAWSER_CLI_HELP_FORMATTER_H_
#define HAWSER_CLI_HELP_FORMATTER_H_

#include <cstddef>
#include <string>

#include "CLI/App.hpp"
#include "CLI/FormatterFwd.hpp"
#include "CLI/Option.hpp"

namespace hawser::cli {

// Formats help for `columns` columns. A flag is shown as it is written,
// `--days=N`, and its description ends with the default value and the
// environment variable that it is read from.
class HelpFormatter : public CLI::Formatter {
 public:
  explicit HelpFormatter(size_t columns) : columns_(columns) {}

  std::string make_description(const CLI::App* app) const override;
  std::string make_usage(const CLI::App* app, std::string name) const override;
  std::string make_option(const CLI::Option* option,
                          bool is_positional) const override;
  std::string make_subcommand(const CLI::App* subcommand) const override;

 private:
  // One name with its description.
  std::string Entry(const std::string& name,
                    const std::string& description) const;

  const size_t columns_;
};

}  // namespace hawser::cli

#endif  // HAWSER_CLI_HELP_FORMATTER_H_
