#include "benchmarks/peer_process.h"

#include "async/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::benchmarks {
namespace {

using async::IsOk;
using async::IsOkAndHolds;
using async::StatusIs;
using ::testing::HasSubstr;

constexpr char kAdvice[] = "apt-get install the-peer";

TEST(PeerProcessTest, RepliesComeInTurn) {
  auto peer = PeerProcess::Start(
      {"/bin/sh", "-c", "echo ready v1; while read x; do echo got $x; done"},
      kAdvice);
  ASSERT_THAT(peer, IsOk());
  EXPECT_EQ((*peer)->description(), "v1");
  EXPECT_THAT((*peer)->Ask("a"), IsOkAndHolds("got a"));
  EXPECT_THAT((*peer)->Ask("b"), IsOkAndHolds("got b"));
}

TEST(PeerProcessTest, MissingPeerIsAnErrorWithAdvice) {
  EXPECT_THAT(
      PeerProcess::Start({"/no/such/peer"}, kAdvice),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(kAdvice)));
  EXPECT_THAT(
      PeerProcess::Start({"/bin/sh", "-c", "echo broken"}, kAdvice),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(kAdvice)));
}

TEST(PeerProcessTest, PeerThatEndsFailsTheQuestion) {
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
