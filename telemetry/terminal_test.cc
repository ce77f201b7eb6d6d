#include "telemetry/terminal.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

#include "gtest/gtest.h"

namespace hawser::telemetry {
namespace {

// The terminal end of a pseudo-terminal.
class TerminalTest : public testing::Test {
 protected:
  void SetUp() override {
    if (access("/dev/pts/ptmx", F_OK) != 0) {
      GTEST_SKIP() << "no terminals here: /dev/pts is not mounted";
    }
    control_ = posix_openpt(O_RDWR | O_NOCTTY);
    ASSERT_EQ(grantpt(control_), 0);
    ASSERT_EQ(unlockpt(control_), 0);
    terminal_ = open(ptsname(control_), O_RDWR | O_NOCTTY);
    ASSERT_GE(terminal_, 0);
    setenv("TERM", "xterm", 1);
    unsetenv("NO_COLOR");
  }
  ~TerminalTest() override {
    close(terminal_);
    close(control_);
  }

  int control_ = -1;
  int terminal_ = -1;
};

TEST_F(TerminalTest, ColumnsAreThoseOfTheTerminal) {
  winsize size = {};
  size.ws_col = 50;
  ASSERT_EQ(ioctl(control_, TIOCSWINSZ, &size), 0);
  EXPECT_EQ(TerminalColumns(terminal_), 50);
}

TEST(FileTest, HasNoColumnsAndIsNotRedrawn) {
  const int file = open("/dev/null", O_WRONLY);
  EXPECT_EQ(TerminalColumns(file), 0);
  EXPECT_FALSE(CanRedraw(file));
  close(file);
}

TEST_F(TerminalTest, TerminalsAreRedrawnUnlessTheEnvironmentForbidsIt) {
  EXPECT_TRUE(CanRedraw(terminal_));
  setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(CanRedraw(terminal_));
  setenv("NO_COLOR", "", 1);
  EXPECT_TRUE(CanRedraw(terminal_));
  setenv("TERM", "dumb", 1);
  EXPECT_FALSE(CanRedraw(terminal_));
  unsetenv("TERM");
  EXPECT_FALSE(CanRedraw(terminal_));
}

}  // namespace
}  // namespace hawser::telemetry
