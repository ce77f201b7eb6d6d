#include "cli/run.h"

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::cli {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

struct Outcome {
  int exit_code;
  std::string out;
  std::string err;
};

Outcome Hawser(const std::vector<std::string>& arguments, int columns = 0) {
  std::ostringstream out;
  std::ostringstream err;
  const int exit_code = Run(arguments, out, err, columns);
  return {exit_code, out.str(), err.str()};
}

// The length of the longest line.
size_t WidthOf(const std::string& text) {
  size_t width = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    width = std::max(width, line.size());
  }
  return width;
}

const std::vector<std::vector<std::string>>& Commands() {
  static const auto* const commands =
      new std::vector<std::vector<std::string>>{{},
                                                {"run"},
                                                {"call"},
                                                {"list"},
                                                {"health"},
                                                {"ps"},
                                                {"ps", "status"},
                                                {"ps", "tables"},
                                                {"ps", "snapshot"},
                                                {"ps", "restore"},
                                                {"certs"},
                                                {"certs", "init"},
                                                {"certs", "issue"},
                                                {"certs", "revoke"},
                                                {"certs", "show"}};
  return *commands;
}

std::vector<std::string> WithHelp(std::vector<std::string> command) {
  command.push_back("--help");
  return command;
}

TEST(RunTest, VersionIsShown) {
  const Outcome version = Hawser({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_THAT(version.out, ContainsRegex("^hawser .* \\(gRPC 1\\."));
}

TEST(RunTest, WrongCommandLineIsOneLineAndExitsWithOne) {
  const struct {
    std::vector<std::string> arguments;
    const char* error;
  } kCases[] = {
      {{},
       "a subcommand is missing: `hawser` has run, call, list, health, ps, "
       "certs"},
      {{"lst"}, "did you mean `hawser list`?"},
      {{"lst", "--job=x"}, "did you mean `hawser list`?"},
      {{"nothing"}, "`hawser`, which has run, call, list, health, ps, certs"},
      {{"issue"}, "did you mean `hawser certs issue`?"},
      {{"certs"}, "`hawser certs` has init, issue, revoke, show"},
      {{"certs", "isue", "a", "b"}, "did you mean `hawser certs issue`?"},
      {{"list", "--jsn"}, "a flag --jsn: did you mean --json?"},
      {{"list", "--timout=3"}, "a flag --timout: did you mean --timeout?"},
      {{"list", "--nothing"}, "does not have a flag --nothing (see"},
      {{"list", "a", "b"}, "b"},
      {{"call", "w0"}, "FUNCTION"},
      {{"list", "--timeout=x"}, "--timeout"},
      {{"certs", "init", "/x", "--days", "0"}, "--days"},
      {{"ps", "--rank=x"}, "--rank"},
      {{"ps", "statsu"}, "did you mean `hawser ps status`?"},
      {{"ps", "--name=x", "status"}, "--name"},
      {{"ps", "snapshot", "users"}, "NAME"},
      {{"lst\x1b[2J"}, "lst\\x1b[2J"},
  };
  for (const auto& [arguments, error] : kCases) {
    const Outcome outcome = Hawser(arguments);
    EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("hawser: "), HasSubstr(error),
                                   ContainsRegex(" \\(see `.* --help`\\)\n$")));
    EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1);
  }
}

TEST(RunTest, HelpFitsTheTerminal) {
  for (const std::vector<std::string>& command : Commands()) {
    for (const int columns : {50, 120}) {
      const Outcome help = Hawser(WithHelp(command), columns);
      EXPECT_EQ(help.exit_code, 0);
      EXPECT_LE(WidthOf(help.out), static_cast<size_t>(columns)) << help.out;
    }
    EXPECT_LE(WidthOf(Hawser(WithHelp(command)).out), 80u);
  }
}

TEST(RunTest, HelpShowsFlagsAsTheyAreWritten) {
  const std::string list = Hawser({"list", "--help"}).out;
  EXPECT_THAT(list, AllOf(HasSubstr("--init=URL"), HasSubstr("--json "),
                          HasSubstr("Default: 10."),
                          HasSubstr("Environment: HAWSER_INIT.")));
  EXPECT_THAT(Hawser({"certs", "issue", "--help"}).out,
              AllOf(HasSubstr("--days=N"), HasSubstr("Default: 30."),
                    HasSubstr("--roles=ROLE,...")));
  for (const std::vector<std::string>& command : Commands()) {
    EXPECT_THAT(Hawser(WithHelp(command)).out,
                Not(AnyOf(HasSubstr("TEXT"), HasSubstr("=INT"))));
  }
}

// `text` as a block of a Markdown document.
std::string Indented(const std::string& text) {
  std::string block;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    block += (line.empty() ? "" : "    " + line) + "\n";
  }
  return block;
}

TEST(RunTest, DocumentShowsTheHelp) {
  std::ifstream file("docs/cli.md");
  std::ostringstream document;
  document << file.rdbuf();
  for (const int columns : {50, 120}) {
    EXPECT_THAT(document.str(),
                HasSubstr(Indented(Hawser({"--help"}, columns).out)));
  }
}

TEST(RunTest, ExitCodesFollowTheStatus) {
  EXPECT_EQ(ExitCode(absl::OkStatus()), 0);
  EXPECT_EQ(ExitCode(absl::InvalidArgumentError("")), 1);
  EXPECT_EQ(ExitCode(absl::NotFoundError("")), 1);
  EXPECT_EQ(ExitCode(absl::InternalError("")), 2);
  EXPECT_EQ(ExitCode(absl::PermissionDeniedError("")), 2);
  EXPECT_EQ(ExitCode(absl::UnavailableError("")), 3);
  EXPECT_EQ(ExitCode(absl::DeadlineExceededError("")), 4);
}

}  // namespace
}  // namespace hawser::cli
