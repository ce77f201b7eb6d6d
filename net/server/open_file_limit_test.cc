#include "net/server/open_file_limit.h"

#include <sys/resource.h>

#include <cstdlib>

#include "gtest/gtest.h"

namespace hawser::net {
namespace {

// Runs in a process of its own, since a lowered hard limit cannot be raised
// again.
[[noreturn]] void RaiseBelow(rlim_t hard) {
  rlimit limit = {.rlim_cur = 64, .rlim_max = hard};
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) std::abort();
  WarnIfFewOpenFiles(100);
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) std::abort();
  std::exit(limit.rlim_cur == hard && RaiseOpenFileLimit() == hard ? 0 : 1);
}

TEST(OpenFileLimitDeathTest, LimitThatIsTooLowForTheJobIsLogged) {
  EXPECT_EXIT(RaiseBelow(799), testing::ExitedWithCode(0),
              "this process may open at most 799 [^\n]* 100 workers[^\n]* "
              "800\n$");
}

TEST(OpenFileLimitDeathTest, SufficientLimitIsNotLogged) {
  EXPECT_EXIT(RaiseBelow(800), testing::ExitedWithCode(0), "^$");
}

}  // namespace
}  // namespace hawser::net
