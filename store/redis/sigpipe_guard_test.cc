#include "store/redis/sigpipe_guard.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "gtest/gtest.h"

namespace hawser::store::internal {
namespace {

// Writes to a socket whose other end is closed.
void WriteToNobody() {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  close(ends[0]);
  EXPECT_EQ(write(ends[1], "x", 1), -1);
  EXPECT_EQ(errno, EPIPE);
  close(ends[1]);
}

TEST(SigpipeGuardTest, WritingToAClosedSocketFailsOnly) {
  const SigpipeGuard guard;
  WriteToNobody();
}

TEST(SigpipeGuardTest, SignalsOutsideStayAsTheyWere) {
  { const SigpipeGuard guard; }
  EXPECT_EXIT(WriteToNobody(), testing::KilledBySignal(SIGPIPE), "");
  {
    const SigpipeGuard guard;
    WriteToNobody();
  }
  sigset_t pending;
  ASSERT_EQ(sigpending(&pending), 0);
  EXPECT_EQ(sigismember(&pending, SIGPIPE), 0);
}

}  // namespace
}  // namespace hawser::store::internal
