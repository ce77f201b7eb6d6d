// What Agent::DebugInfo says of calls and peers.

#include <cstdint>
#include <map>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/future.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/agent/agent.h"
#include "rpc/functions/function.h"
#include "rpc/identity/call_options.h"
#include "rpc/testing/agent_test_fixture.h"
#include "rpc/testing/transport_test_param.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;

constexpr Function<std::string(std::string)> kSame{"debug_info.Same"};
constexpr Function<void()> kFail{"debug_info.Fail"};
constexpr Function<void()> kWait{"debug_info.Wait"};
constexpr Function<void()> kBlock{"debug_info.Block"};

constexpr int64_t kMegabyte = 1'000'000;
// More than the rest of a few messages.
constexpr int64_t kFrames = 10'000;

class AgentDebugInfoTest : public testing::TestWithParam<TransportParam> {
 protected:
  void SetUp() override {
    FunctionRegistry& r = job_.registry();
    ASSERT_THAT(r.Register(kSame, [](std::string text) { return text; }),
                IsOk());
    ASSERT_THAT(r.Register(kFail, [] { return absl::DataLossError("no"); }),
                IsOk());
    ASSERT_THAT(r.Register(kWait, [this] { return gate_future_; }), IsOk());
    ASSERT_THAT(r.Register(kBlock, [this] { return gate_future_.Wait(); }),
                IsOk());
    job_.StartAll(3);
  }

  // -1 if there is no such number.
  int64_t Number(int rank, const std::string& key) {
    const std::map<std::string, std::string> info =
        job_.agent(rank).DebugInfo();
    const auto found = info.find(key);
    int64_t number = -1;
    if (found == info.end() || !absl::SimpleAtoi(found->second, &number)) {
      return -1;
    }
    return number;
  }
  // Calls count until what hung on their ends has run.
  void Await(int rank, const std::string& key, int64_t number) {
    while (Number(rank, key) != number) std::this_thread::yield();
  }

  async::Promise<void> gate_;
  async::Future<void> gate_future_ = gate_.future();
  TestJob job_{MakeTransportFactory(GetParam())};
};

TEST_P(AgentDebugInfoTest, CallsWhoseFunctionsReturnedFuturesAreAsynchronous) {
  async::Future<void> first = job_.agent(0).Async("w1", kWait);
  async::Future<void> second = job_.agent(2).Async("w1", kWait);
  Await(1, "agent.server_active_async_calls", 2);
  EXPECT_GE(Number(1, "agent.server_active_calls"), 2);
  EXPECT_EQ(Number(0, "agent.client_active_calls"), 1);
  EXPECT_EQ(Number(0, "peer.w1.calls_outstanding"), 1);
  gate_.Set(absl::OkStatus());
  EXPECT_THAT(first.Wait(), IsOk());
  EXPECT_THAT(second.Wait(), IsOk());
  Await(1, "agent.server_active_async_calls", 0);
  Await(0, "peer.w1.calls_outstanding", 0);
  // One that ends where it runs never is.
  EXPECT_THAT(job_.agent(0).Sync("w1", kSame, "a"), IsOkAndHolds("a"));
  EXPECT_EQ(Number(1, "agent.server_active_async_calls"), 0);
}

TEST_P(AgentDebugInfoTest, CallsAndBytesAreCountedByPeerAtBothEnds) {
  const std::string text(kMegabyte, 'a');
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(job_.agent(0).Sync("w1", kSame, text), IsOkAndHolds(text));
  }
  EXPECT_THAT(job_.agent(0).Sync("w1", kFail),
              StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(job_.agent(0).Sync("w2", kSame, "a"), IsOk());
  EXPECT_EQ(Number(0, "peer.w1.calls_sent"), 4);
  EXPECT_EQ(Number(0, "peer.w1.calls_failed"), 1);
  EXPECT_EQ(Number(0, "peer.w1.calls_served"), 0);
  EXPECT_EQ(Number(1, "peer.w0.calls_served"), 4);
  EXPECT_EQ(Number(1, "peer.w0.calls_sent"), 0);
  for (const char* key : {"bytes_sent", "bytes_received"}) {
    for (const auto& [rank, peer] :
         {std::pair(0, "peer.w1."), std::pair(1, "peer.w0.")}) {
      EXPECT_GE(Number(rank, absl::StrCat(peer, key)), 3 * kMegabyte);
      EXPECT_LT(Number(rank, absl::StrCat(peer, key)), 3 * kMegabyte + kFrames);
    }
  }
  EXPECT_EQ(Number(0, "agent.calls_made"), 5);
  EXPECT_EQ(Number(1, "agent.calls_made"), 0);
  EXPECT_EQ(Number(0, "peer.w2.calls_sent"), 1);
  EXPECT_EQ(Number(0, "peer.w2.calls_failed"), 0);
  EXPECT_LT(Number(0, "peer.w2.bytes_sent"), kFrames);
  // These two have exchanged heartbeats at most.
  EXPECT_EQ(Number(1, "peer.w2.calls_sent"), -1);
}

TEST_P(AgentDebugInfoTest, CallsThatAreGivenUpHaveFailed) {
  // Until one was sent: the time may pass before, and then it does not count.
  do {
    ASSERT_THAT(
        job_.agent(0).Sync("w1", {.timeout = absl::Milliseconds(20)}, kWait),
        StatusIs(absl::StatusCode::kDeadlineExceeded));
  } while (Number(0, "peer.w1.calls_sent") < 1);
  async::Future<void> call = job_.agent(0).Async("w1", kWait);
  EXPECT_TRUE(call.Cancel());
  Await(0, "peer.w1.calls_outstanding", 0);
  Await(0, "peer.w1.calls_failed", 2);
  EXPECT_EQ(Number(0, "peer.w1.calls_sent"), 2);
}

TEST_P(AgentDebugInfoTest, ThreadsThatWaitAreCounted) {
  async::Future<void> call = job_.agent(0).Async("w1", kBlock);
  Await(1, "agent.blocked_threads", 1);
  gate_.Set(absl::OkStatus());
  EXPECT_THAT(call.Wait(), IsOk());
  Await(1, "agent.blocked_threads", 0);
}

TEST_P(AgentDebugInfoTest, EventsThatWereReadAreCounted) {
  // That the three came.
  for (int rank = 0; rank < 3; ++rank)
    Await(rank, "agent.membership_events", 3);
  EXPECT_EQ(Number(0, "agent.store_reachable"), 1);
  EXPECT_EQ(Number(0, "agent.declared_lost"), 0);
}

// Named by what their parts call them.
TEST_P(AgentDebugInfoTest, TransportSaysWhichConnectionsItsServerTook) {
  EXPECT_THAT(job_.agent(0).Sync("w1", kSame, "a"), IsOkAndHolds("a"));
  if (GetParam() == TransportParam::kInproc) {
    EXPECT_EQ(Number(1, "transport.connections_accepted"), -1);
    return;
  }
  EXPECT_GT(Number(1, "transport.connections_accepted"), 0);
  EXPECT_EQ(Number(1, "transport.connections_refused"), 0);
}

INSTANTIATE_TEST_SUITE_P(Transports, AgentDebugInfoTest,
                         testing::ValuesIn(kTransportParams),
                         TransportParamName());

}  // namespace
}  // namespace hawser::rpc
