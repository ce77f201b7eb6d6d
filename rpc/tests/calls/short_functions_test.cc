// Short functions run in the thread that received the request.

#include <pthread.h>

#include <array>
#include <cstdint>
#include <latch>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "async/future.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/agent/agent.h"
#include "rpc/testing/agent_test_fixture.h"
#include "rpc/testing/transport_test_param.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;

// Returns the name of the thread that runs it. Waits first, without a
// BlockingRegion, for kRelease if the argument is true.
constexpr Function<std::string(bool)> kThreadName{"test.ThreadName"};
constexpr Function<int64_t()> kRelease{"test.Release"};

std::string NameOfThisThread() {
  std::array<char, 16> name{};
  pthread_getname_np(pthread_self(), name.data(), name.size());
  return name.data();
}

class ShortFunctionsTest : public testing::TestWithParam<TransportParam> {
 protected:
  void Start(RunOn run_on) {
    ASSERT_THAT(job_.registry().Register(kThreadName,
                                         [this](bool waits) {
                                           if (waits) release_.wait();
                                           return NameOfThisThread();
                                         },
                                         {.run_on = std::move(run_on)}),
                IsOk());
    ASSERT_THAT(job_.registry().Register(kRelease,
                                         [this]() -> int64_t {
                                           release_.count_down();
                                           return 1;
                                         }),
                IsOk());
    job_.StartAll(2);
  }

  // Calls until the function runs outside of the pool, at most `calls` times.
  // Returns whether it did.
  bool LeavesThePool(int calls) {
    for (int i = 0; i < calls; ++i) {
      const absl::StatusOr<std::string> name =
          job_.agent(0).Sync("w1", kThreadName, false);
      EXPECT_THAT(name, IsOk());
      if (!name.ok()) return false;
      if (*name != "rpc") return true;
    }
    return false;
  }

  std::latch release_{1};
  TestJob job_{MakeTransportFactory(GetParam())};
};

TEST_P(ShortFunctionsTest, LeaveThePool) {
  Start(RunOn::Pool());
  EXPECT_THAT(job_.agent(0).Sync("w1", kThreadName, false),
              IsOkAndHolds("rpc"));
  EXPECT_TRUE(LeavesThePool(10000));
}

TEST_P(ShortFunctionsTest, OfAQueueStayOnThePool) {
  Start(RunOn::Queue("a"));
  EXPECT_FALSE(LeavesThePool(300));
}

// The worker goes on to receive while a function that was short so far waits
// for another call.
TEST_P(ShortFunctionsTest, MayWaitForLaterCalls) {
  Start(RunOn::Pool());
  ASSERT_TRUE(LeavesThePool(10000));
  async::Future<std::string> waiting =
      job_.agent(0).Async("w1", kThreadName, true);
  EXPECT_THAT(job_.agent(0).Sync("w1", kRelease), IsOkAndHolds(1));
  EXPECT_THAT(std::move(waiting).Wait(), IsOk());
}

INSTANTIATE_TEST_SUITE_P(Transports, ShortFunctionsTest,
                         testing::ValuesIn(kTransportParams),
                         TransportParamName());

}  // namespace
}  // namespace hawser::rpc
