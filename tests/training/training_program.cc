#include "tests/training/training_program.h"

#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "async/check.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace hawser::tests {
namespace {

std::vector<std::string> Patient(std::vector<std::string> flags) {
  flags.insert(flags.begin(), "--silent_limit=20s");
  return flags;
}

}  // namespace

TrainingProgram::TrainingProgram(const std::string& path,
                                 const std::vector<std::string>& flags)
    : Program(path, Patient(flags)) {}

nlohmann::json TrainingProgram::Result() {
  EXPECT_EQ(Wait(), 0) << Errors();
  return nlohmann::json::parse(Output(), nullptr, /*allow_exceptions=*/false);
}

void TrainingProgram::ExpectError(const std::string& error) {
  EXPECT_EQ(Wait(), 1);
  const std::string errors = Errors();
  EXPECT_THAT(errors, testing::HasSubstr(error));
  EXPECT_EQ(std::count(errors.begin(), errors.end(), '\n'), 1) << errors;
  EXPECT_EQ(Output(), "");
}

std::string TemporaryPath(const std::string& name) {
  return absl::StrCat(testing::TempDir(), "/", name);
}

std::string DataFlag(const std::string& name, const std::string& text) {
  const std::string path = TemporaryPath(name);
  std::ofstream(path) << text;
  return absl::StrCat("--data=", path);
}

bool WaitForFiles(const std::string& directory, absl::FunctionRef<bool()> done,
                  std::chrono::seconds limit) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + limit;
  const int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  HAWSER_CHECK(watch >= 0 &&
               inotify_add_watch(watch, directory.c_str(),
                                 IN_CLOSE_WRITE | IN_MOVED_TO) >= 0)
      << "cannot watch " << directory;
  bool is_done = false;
  while (!(is_done = done()) && Clock::now() < end) {
    pollfd change{watch, POLLIN, 0};
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
    poll(&change, 1, std::max(static_cast<int>(left.count()), 0));
    char events[4096];
    while (read(watch, events, sizeof(events)) > 0) {
    }
  }
  close(watch);
  return is_done;
}

}  // namespace hawser::tests
