// Tests of calls over sockets that functions make while they run in the polling
// thread.

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "async/future.h"
#include "async/testing/status_matchers.h"
#include "gtest/gtest.h"
#include "rpc/agent/current_call.h"
#include "rpc/functions/function.h"
#include "rpc/functions/run_on.h"
#include "rpc/testing/agent_test_fixture.h"
#include "rpc/testing/transport_test_param.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;

constexpr Function<int64_t(int64_t)> kIncrement{"nested.Increment"};
// Returns whether the reply to a nested call arrived in the calling thread.
constexpr Function<bool()> kReceivesReply{"nested.ReceivesReply"};
// Returns the depth, by as many nested calls to the other worker.
constexpr Function<int64_t(int64_t)> kDepth{"nested.Depth"};

Agent& Here() { return CurrentCall::Get()->agent(); }
std::string Other() { return Here().info().name == "w0" ? "w1" : "w0"; }

absl::StatusOr<bool> ReceivesReply() {
  async::Future<int64_t> reply = Here().Async(Other(), kIncrement, 1);
  std::atomic<std::thread::id> thread;
  reply.OnReady([&](const absl::StatusOr<int64_t>&) {
    thread = std::this_thread::get_id();
  });
  const absl::StatusOr<int64_t> result = reply.Wait();
  if (!result.ok()) return result.status();
  while (thread.load() == std::thread::id()) std::this_thread::yield();
  return thread.load() == std::this_thread::get_id();
}

absl::StatusOr<int64_t> Depth(int64_t depth) {
  if (depth == 0) return 0;
  absl::StatusOr<int64_t> rest = Here().Sync(Other(), kDepth, depth - 1);
  if (!rest.ok()) return rest.status();
  return *rest + 1;
}

class NestedCallTest : public testing::Test {
 protected:
  void SetUp() override {
    FunctionRegistry& registry = job_.registry();
    ASSERT_THAT(registry.Register(kIncrement, [](int64_t x) { return x + 1; },
                                  {.run_on = RunOn::Inline()}),
                IsOk());
    ASSERT_THAT(registry.Register(kReceivesReply, ReceivesReply,
                                  {.run_on = RunOn::Inline()}),
                IsOk());
    ASSERT_THAT(registry.Register(kDepth, Depth, {.run_on = RunOn::Inline()}),
                IsOk());
    job_.StartAll(2);
  }

  TestJob job_{MakeTransportFactory(TransportParam::kGrpc)};
};

TEST_F(NestedCallTest, PollingThreadReceivesTheReplyThatItAwaits) {
  int in_place = 0;
  for (int i = 0; i < 100; ++i) {
    const absl::StatusOr<bool> received =
        job_.agent(0).Sync("w1", kReceivesReply);
    ASSERT_THAT(received, IsOk());
    if (*received) ++in_place;
  }
  // On a busy machine another thread takes over at times.
  EXPECT_GT(in_place, 0);
}

TEST_F(NestedCallTest, DeepNestingFromSeveralThreads) {
  std::vector<std::thread> threads;
  for (int64_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([this, thread] {
      for (int64_t i = 0; i < 50; ++i) {
        const int64_t depth = (thread + i) % 12;
        EXPECT_THAT(job_.agent(static_cast<int>(i % 2))
                        .Sync(i % 2 == 0 ? "w1" : "w0", kDepth, depth),
                    IsOkAndHolds(depth));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace hawser::rpc
