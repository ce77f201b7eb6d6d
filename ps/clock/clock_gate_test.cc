#include "ps/clock/clock_gate.h"

#include <atomic>
#include <cstdint>
#include <future>
#include <memory>

#include "absl/status/status.h"
#include "async/status_macros.h"
#include "async/testing/status_matchers.h"
#include "gtest/gtest.h"
#include "net/per_peer_quota.h"
#include "proto/ps.pb.h"
#include "ps/storage/consistency.h"
#include "ps/storage/logged_table.h"
#include "ps/storage/push_log.h"
#include "ps/storage/sparse_table.h"
#include "ps/storage/worker_clocks.h"
#include "rpc/agent/host_handle.h"
#include "rpc/functions/method.h"
#include "rpc/identity/worker_info.h"
#include "rpc/testing/fakes/fake_service_host.h"

namespace hawser::ps {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;

rpc::MethodCall CallOf(int rank) {
  return {.peer = rpc::FakeServiceHost::MakeWorker(rank),
          .cancellation = nullptr};
}

class ClockGateTest : public testing::Test {
 protected:
  void Make(const Consistency& consistency) {
    table_ =
        *LoggedTable::Create(*SparseTable::Create({.name = "t",
                                                   .width = 1,
                                                   .rule = {"SGD", {{"lr", 1}}},
                                                   .consistency = consistency},
                                                  {.num_partitions = 1}),
                             /*directory=*/nullptr, PushLogging::kWrite);
    gate_ = std::make_shared<ClockGate>(
        table_,
        std::make_shared<net::PerPeerQuota>(
            net::PerPeerQuota::Options{.items = "requests", .advice = "wait"}),
        handle_);
  }

  void Join(int rank, int num_workers) {
    host_.AddWorker(rpc::FakeServiceHost::MakeWorker(rank));
    v1::JoinClockRequest request;
    request.set_join(1);
    request.set_num_workers(num_workers);
    ASSERT_THAT(gate_->Join(CallOf(rank), request), IsOkAndHolds(0));
  }

  absl::Status Advance(int rank, int64_t clock, int64_t num_pushes) {
    v1::AdvanceClockRequest request;
    request.set_join(1);
    request.set_clock(clock);
    request.set_num_pushes(num_pushes);
    return gate_->Advance(CallOf(rank), request);
  }

  // Trains until `end`, with one push at each clock.
  absl::Status Train(int rank, int64_t end) {
    const rpc::MethodCall call = CallOf(rank);
    for (int64_t clock = 0; clock < end; ++clock) {
      const auto sequence = static_cast<uint64_t>(clock + 1);
      const WorkerTime time{.join = 1, .clock = clock};
      RETURN_IF_ERROR(gate_->CheckPush(call, sequence, time));
      table_->clocks()->PushApplied({call.peer.incarnation, sequence}, time);
      gate_->Proceed();
      RETURN_IF_ERROR(Advance(rank, clock + 1, 1));
    }
    return absl::OkStatus();
  }

  rpc::FakeServiceHost host_;
  std::shared_ptr<rpc::HostHandle> handle_ =
      std::make_shared<rpc::HostHandle>(host_);
  std::shared_ptr<LoggedTable> table_;
  std::shared_ptr<ClockGate> gate_;
};

TEST_F(ClockGateTest, RequestsAtTheSameTimeLoseNothing) {
  constexpr int64_t kClocks = 500'000;
  Make(Consistency::BoundedStaleness(2));
  Join(0, 1);
  std::atomic<bool> trained = false;
  // As the requests of other workers would.
  std::future<void> others = std::async(std::launch::async, [&] {
    while (!trained) gate_->Proceed();
  });
  EXPECT_THAT(Train(0, kClocks), IsOk());
  trained = true;
  others.get();
  EXPECT_EQ(gate_->Numbers().completed, kClocks);
  EXPECT_EQ(table_->clocks()->applied(), kClocks);
}

}  // namespace
}  // namespace hawser::ps
