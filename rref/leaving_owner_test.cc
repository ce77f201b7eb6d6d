// A leaving worker does not create new values for its peers.

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/synchronization/notification.h"
#include "async/blocking_region.h"
#include "async/future.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/agent/agent.h"
#include "rpc/errors/error_detail.h"
#include "rpc/functions/function.h"
#include "rpc/testing/agent_test_fixture.h"
#include "rpc/testing/simulated_store_link.h"
#include "rref/rref.h"
#include "rref/rref_service.h"

namespace hawser::rref {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::Optional;

constexpr rpc::Function<int64_t()> kOne{"test.One"};

// The store is slow, so the peers do not know yet that the worker leaves.
TEST(LeavingOwnerTest, RefusesNewCreations) {
  std::atomic<bool> slow = false;
  absl::Notification answer;
  rpc::TestJob job;
  rpc::SimulatedStoreLink link(&job.store(), {.on_way = [&] {
    if (!slow) return;
    async::BlockingRegion region;
    answer.WaitForNotification();
  }});
  ASSERT_THAT(job.registry().Register(kOne, [] { return 1; }), IsOk());
  for (int rank = 0; rank < 2; ++rank) {
    job.StartOne(rank, [&](int, rpc::AgentOptions& options) {
      options.services.push_back(std::make_unique<RRefService>());
      if (rank == 1) options.store = &link;
    });
  }
  // Worker 1 knows worker 0 before it loses the store.
  ASSERT_THAT(job.agent(0).Sync("w1", kOne), IsOk());
  slow = true;
  const async::Future<void> left = job.agent(1).Leave();
  const auto leaves =
      StatusIs(absl::StatusCode::kUnavailable, HasSubstr("is leaving"));
  // Functions still run until the worker has drained.
  absl::Status called;
  do {
    called = job.agent(0).Sync("w1", kOne).status();
  } while (called.ok());
  EXPECT_THAT(called, leaves);
  const auto made = Remote(job.agent(0), "w1", kOne);
  const absl::Status status =
      made.ok() ? made->WhenConfirmed().Wait() : made.status();
  EXPECT_THAT(status, leaves);
  EXPECT_THAT(rpc::GetErrorDetail(status),
              Optional(Field(&rpc::ErrorDetail::maybe_applied, false)));
  answer.Notify();
  EXPECT_THAT(left.Wait(), IsOk());
  job.StopAll();
}

}  // namespace
}  // namespace hawser::rref
