#include <cstdint>

#include "absl/time/time.h"
#include "async/status_matchers.h"
#include "gtest/gtest.h"
#include "rpc/agent.h"
#include "rpc/agent_test_fixture.h"
#include "rpc/current_call.h"
#include "rpc/transport_test_param.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;

constexpr Function<int64_t(int64_t)> kPingPong{"test.PingPong"};

class AgentNestedTest : public testing::TestWithParam<TransportParam> {};

// Each level blocks a pool thread of one of two agents that have one each.
TEST_P(AgentNestedTest, BlockingCallsNestAThousandDeepOnPoolsOfOneThread) {
#ifdef __SANITIZE_ADDRESS__
  constexpr int64_t kDepth = 200;
#else
  constexpr int64_t kDepth = 1000;
#endif
  TestJob job(MakeTransportFactory(GetParam()));
  ASSERT_THAT(job.registry().Register(
                  kPingPong,
                  [](int64_t depth) -> absl::StatusOr<int64_t> {
                    if (depth == 0) return 0;
                    const CurrentCall& call = *CurrentCall::Get();
                    absl::StatusOr<int64_t> below = call.agent().Sync(
                        call.caller(), {.timeout = absl::Seconds(50)},
                        kPingPong, depth - 1);
                    if (!below.ok()) return below;
                    return *below + 1;
                  }),
              IsOk());
  job.StartAll(2, [](int, AgentOptions& options) { options.num_threads = 1; });
  EXPECT_THAT(job.agent(0).Sync("w1", {.timeout = absl::Seconds(50)}, kPingPong,
                                kDepth),
              IsOkAndHolds(kDepth));
}

INSTANTIATE_TEST_SUITE_P(Transports, AgentNestedTest,
                         testing::ValuesIn(kTransportParams),
                         TransportParamName());

}  // namespace
}  // namespace hawser::rpc
