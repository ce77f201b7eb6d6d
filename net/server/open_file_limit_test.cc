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
  RaiseOpenFileLimit();
  RaiseOpenFileLimit();
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) std::abort();
  std::exit(limit.rlim_cur == hard ? 0 : 1);
}

TEST(OpenFileLimitDeathTest, LowHardLimitIsLoggedOnce) {
  EXPECT_EXIT(RaiseBelow(1024), testing::ExitedWithCode(0),
              "^hawser: this process may open at most 1024 [^\n]*\n$");
}

TEST(OpenFileLimitDeathTest, SufficientHardLimitIsNotLogged) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  if (limit.rlim_max < 65'536) GTEST_SKIP() << "the hard limit is lower";
  EXPECT_EXIT(RaiseBelow(65'536), testing::ExitedWithCode(0), "^$");
}

}  // namespace
}  // namespace hawser::net
