#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "async/future.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/agent/agent.h"
#include "rpc/agent/current_call.h"
#include "rpc/errors/error_detail.h"
#include "rpc/testing/agent_test_fixture.h"
#include "rpc/testing/transport_test_param.h"
#include "rpc/transport/cancellation.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::HasSubstr;

constexpr Function<int64_t(int64_t)> kPingPong{"test.PingPong"};
constexpr Function<int64_t(int64_t)> kHeldBack{"test.HeldBack"};

#ifdef __SANITIZE_ADDRESS__
constexpr int64_t kDepth = 200;
#else
constexpr int64_t kDepth = 1000;
#endif

class AgentNestedTest : public testing::TestWithParam<TransportParam> {
 protected:
  // kPingPong: calls its caller back, `depth` deep, and counts the levels.
  void StartPingPong(int num_workers, RunOn run_on,
                     const TestJob::Change& change) {
    ASSERT_THAT(job_.registry().Register(
                    kPingPong,
                    [](int64_t depth) -> absl::StatusOr<int64_t> {
                      if (depth == 0) return 0;
                      const CurrentCall& call = *CurrentCall::Get();
                      absl::StatusOr<int64_t> below = call.agent().Sync(
                          call.caller(), {.timeout = absl::Seconds(50)},
                          kPingPong, depth - 1);
                      if (!below.ok()) return below;
                      return *below + 1;
                    },
                    {.run_on = std::move(run_on)}),
                IsOk());
    job_.StartAll(num_workers, change);
  }

  static void OneThread(int, AgentOptions& options) { options.num_threads = 1; }

  absl::StatusOr<int64_t> Call(int64_t depth) {
    const int last = static_cast<int>(job_.agent(0).workers().size()) - 1;
    return job_.agent(0).Sync(WorkerId(last), {.timeout = absl::Seconds(50)},
                              kPingPong, depth);
  }

  TestJob job_{MakeTransportFactory(GetParam())};
};

// Each level blocks a pool thread of one of two agents that have one each.
TEST_P(AgentNestedTest, TwoWorkersCallEachOtherAThousandDeep) {
  StartPingPong(2, RunOn::Pool(), OneThread);
  EXPECT_THAT(Call(kDepth), IsOkAndHolds(kDepth));
}

TEST_P(AgentNestedTest, WorkerCallsItselfAThousandDeep) {
  StartPingPong(1, RunOn::Pool(), OneThread);
  EXPECT_THAT(Call(kDepth), IsOkAndHolds(kDepth));
}

// More than there are polling threads.
TEST_P(AgentNestedTest, InlineFunctionsNestAThousandDeep) {
  StartPingPong(2, RunOn::Inline(), OneThread);
  EXPECT_THAT(Call(kDepth), IsOkAndHolds(kDepth));
}

TEST_P(AgentNestedTest, CallsWithoutEndAreRefusedAndTheWorkerGoesOn) {
  StartPingPong(2, RunOn::Pool(), [](int, AgentOptions& options) {
    options.num_threads = 2;
    options.max_threads = 40;
  });
  for (int i = 0; i < 3; ++i) {
    const absl::Status status = Call(1'000'000).status();
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted,
                                 HasSubstr("max_threads")));
    ASSERT_TRUE(GetErrorDetail(status).has_value());
    EXPECT_FALSE(GetErrorDetail(status)->maybe_applied);
    EXPECT_THAT(Call(10), IsOkAndHolds(10));
  }
}

// What was called for a call that is given up ends with it.
TEST_P(AgentNestedTest, CancellationGoesDownToTheLastCallee) {
  constexpr Function<int64_t(int64_t)> kGoDown{"test.GoDown"};
  absl::Notification entered;
  absl::Notification cancelled;
  Cancellation::Registration registration;
  async::Promise<int64_t> never;
  const auto go_down = [&](int64_t depth) {
    const CurrentCall& call = *CurrentCall::Get();
    if (depth > 0) {
      const int other = 1 - call.agent().info().id.value();
      return call.agent().Async(WorkerId(other), {.timeout = kNoTimeout},
                                kGoDown, depth - 1);
    }
    registration =
        call.cancellation().OnCancel([&cancelled] { cancelled.Notify(); });
    entered.Notify();
    return never.future();
  };
  ASSERT_THAT(job_.registry().Register(kGoDown, go_down), IsOk());
  job_.StartAll(2, OneThread);
  async::Future<int64_t> call = job_.agent(0).Async(
      WorkerId(1), {.timeout = kNoTimeout}, kGoDown, int64_t{5});
  entered.WaitForNotification();
  EXPECT_FALSE(cancelled.HasBeenNotified());
  EXPECT_TRUE(call.Cancel());
  EXPECT_THAT(call.Wait(), StatusIs(absl::StatusCode::kCancelled));
  cancelled.WaitForNotification();
  job_.StopAll();
}

// Callbacks run on polling threads, of which there are fewer. No reply comes
// before its callback is there, which this thread would run at once.
TEST_P(AgentNestedTest, CallbacksBlockAThousandDeep) {
  async::Promise<int64_t> reply;
  ASSERT_THAT(
      job_.registry().Register(
          kHeldBack, [future = reply.future()](int64_t) { return future; }),
      IsOk());
  StartPingPong(2, RunOn::Pool(), OneThread);
  Agent& agent = job_.agent(0);
  async::Promise<void> released;
  std::vector<async::Future<int64_t>> blocked;
  for (int64_t i = 0; i < kDepth; ++i) {
    blocked.push_back(
        agent.Async("w1", kHeldBack, 0)
            .Then([future = released.future()](absl::StatusOr<int64_t> value) {
              (void)future.Wait();
              return value;
            }));
  }
  reply.Set(0);
  EXPECT_THAT(Call(3), IsOkAndHolds(3));
  released.Set(absl::OkStatus());
  for (auto& future : blocked) EXPECT_THAT(future.Wait(), IsOkAndHolds(0));
}

INSTANTIATE_TEST_SUITE_P(Transports, AgentNestedTest,
                         testing::ValuesIn(kTransportParams),
                         TransportParamName());

}  // namespace
}  // namespace hawser::rpc
