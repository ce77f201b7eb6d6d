#include "benchmarks/peer_process.h"

#include <fstream>
#include <string>
#include <thread>

#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::benchmarks {
namespace {

using async::IsOk;
using async::IsOkAndHolds;
using async::StatusIs;
using ::testing::HasSubstr;

constexpr char kAdvice[] = "apt-get install the-peer";

TEST(PeerProcessTest, EachRequestGetsItsReply) {
  auto peer = PeerProcess::Start(
      {"/bin/sh", "-c", "echo ready v1; while read x; do echo got $x; done"},
      kAdvice);
  ASSERT_THAT(peer, IsOk());
  EXPECT_EQ((*peer)->description(), "v1");
  EXPECT_THAT((*peer)->Ask("a"), IsOkAndHolds("got a"));
  EXPECT_THAT((*peer)->Ask("b"), IsOkAndHolds("got b"));
}

// The state of a process as in /proc/PID/stat; 0 if it has ended.
char StateOf(const std::string& pid) {
  std::ifstream stat("/proc/" + pid + "/stat");
  std::string number, name;
  char state = 0;
  stat >> number >> name >> state;
  return state;
}

TEST(PeerProcessTest, PeerThatIsStoppedWhenIdleRunsOnlyInItsTurn) {
  std::string child;
  {
    // It starts a second process, as peers with a caller and a callee do.
    auto peer = PeerProcess::Start({"/bin/sh", "-c",
                                    "while :; do :; done & "
                                    "echo ready $!; while read x; do echo $x; "
                                    "done"},
                                   kAdvice, PeerProcess::WhenIdle::kStopped);
    ASSERT_THAT(peer, IsOk());
    child = (*peer)->description();
    while (StateOf(child) != 'T') std::this_thread::yield();
    EXPECT_THAT((*peer)->Ask("a"), IsOkAndHolds("a"));
    while (StateOf(child) != 'T') std::this_thread::yield();
  }
  while (StateOf(child) != 0 && StateOf(child) != 'Z') {
    std::this_thread::yield();
  }
}

TEST(PeerProcessTest, MissingPeerIsAnErrorWithAdvice) {
  EXPECT_THAT(
      PeerProcess::Start({"/no/such/peer"}, kAdvice),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(kAdvice)));
  EXPECT_THAT(
      PeerProcess::Start({"/bin/sh", "-c", "echo broken"}, kAdvice),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(kAdvice)));
}

TEST(PeerProcessTest, NumbersArePositive) {
  auto peer = PeerProcess::Start(
      {"/bin/sh", "-c", "echo ready; while read x; do echo $x; done"}, kAdvice);
  ASSERT_THAT(peer, IsOk());
  EXPECT_THAT((*peer)->AskNumber("0.25"), IsOkAndHolds(0.25));
  for (const char* text : {"", "0", "-1", "nan", "1 second"}) {
    EXPECT_THAT((*peer)->AskNumber(text),
                StatusIs(absl::StatusCode::kInternal, HasSubstr(text)));
  }
}

TEST(PeerProcessTest, RequestToAPeerThatEndsFails) {
  auto peer = PeerProcess::Start(
      {"/bin/sh", "-c", "echo ready; read x; exit 1"}, kAdvice);
  ASSERT_THAT(peer, IsOk());
  EXPECT_THAT((*peer)->Ask("a"),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr(kAdvice)));
  EXPECT_THAT((*peer)->Ask("b"),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr(kAdvice)));
}

}  // namespace
}  // namespace hawser::benchmarks
