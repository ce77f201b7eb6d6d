// Tests of F9 and F10: connections that break, that stay open without a peer,
// and that open and close often.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "async/testing/nightly.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "net/testing/tcp_proxy.h"
#include "tests/faults/faults_test_fixture.h"
#include "tests/faults/worker_functions.h"
#include "tests/faults/worker_process.h"

namespace hawser::tests {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using Direction = net::TcpProxy::Direction;

const int kConnects = async::NightlyOr(600'000, 3'000);

constexpr int kFirstConnects = 500;

// The documented limit for a peer that messages no longer reach, although its
// requests arrive on other connections.
const absl::Duration kHalfOpenLimit = absl::Milliseconds(9500) + kSlack;

// Fixture in which the driver reaches worker "a" through a proxy.
class HalfOpenTest : public FaultsTest {
 protected:
  // Shared memory would bypass the faults of the proxy.
  explicit HalfOpenTest(const rpc::LivenessOptions& liveness = kLiveness)
      : FaultsTest(/*same_host=*/false, liveness) {}

  void SetUp() override {
    FaultsTest::SetUp();
    ASSERT_NE(mkdtemp(directory_), nullptr);
    proxy_ = std::make_unique<net::TcpProxy>(path());
    ASSERT_TRUE(Start("a", 1, [&](WorkerProcessOptions& options) {
                  options.bind_address = "unix:" + path();
                  options.advertise_address = proxy_->address();
                  options.liveness = kLiveness;
                }).AwaitReady());
    ASSERT_THAT(driver().Sync("a", kApply, 1), IsOkAndHolds(1));
    info_ = *driver().FindWorker("a");
  }

  void TearDown() override {
    FaultsTest::TearDown();
    unlink(path().c_str());
    rmdir(directory_);
  }

  std::string path() const { return absl::StrCat(directory_, "/a"); }

  // Starts a call that ends when its connection does.
  async::Future<void> BeginHeldCall() {
    async::Future<void> held =
        driver().Async("a", {.timeout = rpc::kNoTimeout}, kHold, 1);
    AwaitBegun("a", 1);
    return held;
  }

  void ExpectReachable() {
    // A broken connection is opened again after its backoff.
    while (true) {
      const absl::Status status = driver().Sync("a", kApply, 2).status();
      if (status.ok()) break;
      ASSERT_THAT(status, StatusIs(absl::StatusCode::kUnavailable));
      ASSERT_FALSE(driver().IsLost(info_));
    }
  }

  char directory_[32] = "/tmp/half_open.XXXXXX";
  std::unique_ptr<net::TcpProxy> proxy_;
  rpc::WorkerInfo info_;
};

// Fixture whose driver detects a loss before the transport does, which checks
// less often.
class VanishedPeerTest : public HalfOpenTest {
 protected:
  VanishedPeerTest() : HalfOpenTest(rpc::LivenessOptions()) {}

  // Waits until the driver itself has detected the loss.
  void AwaitLost() {
    const absl::Time deadline = absl::Now() + kHalfOpenLimit;
    while (!driver().IsLost(info_)) {
      ASSERT_LT(absl::Now(), deadline);
      Last(absl::Milliseconds(10));
    }
  }
};

TEST_F(VanishedPeerTest, F9PendingCallsEndWhenThePeerVanishes) {
  async::Future<void> held = BeginHeldCall();
  const absl::Time start = absl::Now();
  proxy_->BlackHole(Direction::kToServer, true);
  proxy_->BlackHole(Direction::kToClient, true);
  const absl::Status status = held.Wait();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_TRUE(IsAt(status, "a", /*maybe_applied=*/true)) << status;
  EXPECT_LT(absl::Now() - start, kHalfOpenLimit);
  AwaitLost();
  // Later calls fail at once.
  const absl::Time later = absl::Now();
  const absl::Status next = driver().Sync("a", kApply, 1).status();
  EXPECT_THAT(next, StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_TRUE(IsAt(next, "a", /*maybe_applied=*/false)) << next;
  EXPECT_LT(absl::Now() - later, std::max(absl::Seconds(1), kSlack));
}

TEST_F(VanishedPeerTest, F9LossInOneDirectionIsEnough) {
  async::Future<void> held = BeginHeldCall();
  const absl::Time start = absl::Now();
  proxy_->BlackHole(Direction::kToClient, true);
  EXPECT_THAT(held.Wait(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_LT(absl::Now() - start, kHalfOpenLimit);
  AwaitLost();
}

TEST_F(VanishedPeerTest, F9LossOnAnIdleConnectionIsDetected) {
  proxy_->BlackHole(Direction::kToServer, true);
  proxy_->BlackHole(Direction::kToClient, true);
  EXPECT_TRUE(AwaitEvent(rpc::MemberEvent::Kind::kLost, "a", kHalfOpenLimit));
}

TEST_F(HalfOpenTest, F9FinFromTheServerEndsPendingCalls) {
  async::Future<void> held = BeginHeldCall();
  const absl::Time start = absl::Now();
  proxy_->HalfClose(Direction::kToClient);
  EXPECT_THAT(held.Wait(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_LT(absl::Now() - start, kHalfOpenLimit);
  ExpectReachable();
}

TEST_F(HalfOpenTest, F9FinFromTheClientEndsPendingCalls) {
  async::Future<void> held = BeginHeldCall();
  const absl::Time start = absl::Now();
  proxy_->HalfClose(Direction::kToServer);
  EXPECT_THAT(held.Wait(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_LT(absl::Now() - start, kHalfOpenLimit);
  ExpectReachable();
}

TEST_F(HalfOpenTest, ResetEndsPendingCallsAtOnce) {
  async::Future<void> held = BeginHeldCall();
  const absl::Time start = absl::Now();
  proxy_->Reset();
  const absl::Status status = held.Wait();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_TRUE(IsAt(status, "a", /*maybe_applied=*/true)) << status;
  EXPECT_LT(absl::Now() - start, kSlack);
  ExpectReachable();
  // The callee was notified of the cancellation.
  auto cancelled = driver().Sync("a", kCancelled);
  ASSERT_THAT(cancelled, IsOk());
  EXPECT_EQ(cancelled->size(), 1u);
}

TEST_F(HalfOpenTest, SlowNetworkDoesNotLoseThePeer) {
  constexpr absl::Duration kDelay = absl::Milliseconds(200);
  proxy_->SetDelay(Direction::kToServer, kDelay);
  proxy_->SetDelay(Direction::kToClient, kDelay);
  const absl::Time start = absl::Now();
  // For longer than the limit of a silent peer.
  for (int i = 0; absl::Now() - start <= kLiveness.silent_limit; ++i) {
    const absl::Time called = absl::Now();
    EXPECT_THAT(driver().Sync("a", kApply, i), IsOk());
    EXPECT_GE(absl::Now() - called, 2 * kDelay);
  }
}

TEST_F(HalfOpenTest, F10ClosedConnectionsLeakNothing) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int port = 0;
  const std::string to = proxy_->address();
  ASSERT_TRUE(absl::SimpleAtoi(to.substr(to.rfind(':') + 1), &port));
  address.sin_port = htons(static_cast<uint16_t>(port));
  std::map<std::string, int64_t> before = *driver().Sync("a", kCensus);
  for (int i = -kFirstConnects; i < kConnects; ++i) {
    // Counted here, since thread pools have started all threads by now.
    if (i == 0) before["threads"] = (*driver().Sync("a", kCensus))["threads"];
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT_EQ(
        connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    close(fd);
    // Calls of members succeed meanwhile.
    if (i % 500 != 0) continue;
    EXPECT_THAT(driver().Sync("a", kApply, i), IsOk());
  }
  // The server may still be closing the last connections.
  const absl::Time deadline = absl::Now() + absl::Seconds(5) + kSlack;
  std::map<std::string, int64_t> after;
  do {
    after = *driver().Sync("a", kCensus);
  } while ((after["descriptors"] > before["descriptors"] + 2 ||
            after["threads"] > before["threads"] + 4) &&
           absl::Now() < deadline);
  EXPECT_LE(after["descriptors"], before["descriptors"] + 2);
  EXPECT_LE(after["threads"], before["threads"] + 4);
}

}  // namespace
}  // namespace hawser::tests
