// Tests of F4 of docs/reliability.md: a store whose server has died, as that of
// rank 0 does with its process. Workers use cached data, or fail in time.

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "async/future.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/agent/agent.h"
#include "rpc/errors/error_detail.h"
#include "rpc/functions/function.h"
#include "rpc/identity/worker_info.h"
#include "rpc/testing/agent_test_fixture.h"
#include "store/grpc/server.h"
#include "store/grpc/store.h"
#include "store/store.h"
#include "store/testing/test_server.h"

namespace hawser::tests {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr rpc::Function<void()> kTouch{"test.Touch"};
// Longer than any operation of these tests, and much shorter than the store's
// timeout.
constexpr absl::Duration kLimit = absl::Seconds(30);

class DeadStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_THAT(job_.registry().Register(kTouch, [] {}), IsOk());
    server_ = store::MustStart();
    for (int i = 0; i < kWorkers; ++i) {
      stores_.push_back(store::MustConnect(server_->address()));
      ASSERT_EQ(stores_.back()->timeout(), store::kDefaultTimeout);
    }
    job_.StartAll(kWorkers, [this](int rank, rpc::AgentOptions& options) {
      options.store = stores_[rank].get();
      options.liveness.heartbeat_interval = absl::Milliseconds(100);
      options.shutdown_timeout = absl::Seconds(1);
    });
  }

  // The workers must stop before their stores are destroyed.
  void TearDown() override { job_.StopAll(); }

  void KillStore() {
    server_ = nullptr;
    while (job_.agent(0).DebugInfo()["agent.store_reachable"] != "0") {
      std::this_thread::yield();
    }
  }

  static constexpr int kWorkers = 3;
  std::unique_ptr<store::StoreServer> server_;
  std::vector<std::unique_ptr<store::GrpcStore>> stores_;
  rpc::TestJob job_;
};

TEST_F(DeadStoreTest, CallToALostWorkerReportsTheLoss) {
  const rpc::WorkerInfo lost = job_.agent(1).info();
  ASSERT_THAT(job_.agent(1).Shutdown(/*graceful=*/false), IsOk());
  while (!job_.agent(0).IsLost(lost)) std::this_thread::yield();
  KillStore();
  const absl::Time start = absl::Now();
  const async::Future<void> call =
      job_.agent(0).Async("w1", {.timeout = 2 * kLimit}, kTouch);
  const absl::Status status = call.Wait();
  EXPECT_LT(absl::Now() - start, kLimit);
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("'w1'")));
  EXPECT_EQ(rpc::GetErrorDetail(status)->incarnation, lost.incarnation);
  EXPECT_FALSE(rpc::GetErrorDetail(status)->maybe_applied);
  // Calls to other workers do not use the store.
  EXPECT_THAT(job_.agent(0).Sync("w2", kTouch), IsOk());
}

TEST_F(DeadStoreTest, CallToAnUnknownWorkerEndsInTime) {
  KillStore();
  const absl::Time start = absl::Now();
  EXPECT_THAT(
      job_.agent(0).Sync("nobody", {.timeout = absl::Milliseconds(100)},
                         kTouch),
      StatusIs(absl::StatusCode::kDeadlineExceeded,
               AllOf(HasSubstr("nobody"), HasSubstr("does not answer"))));
  EXPECT_THAT(
      job_.agent(0).Sync("nobody", kTouch),
      StatusIs(absl::StatusCode::kUnavailable,
               AllOf(HasSubstr("nobody"), HasSubstr("does not answer"))));
  EXPECT_LT(absl::Now() - start, kLimit);
}

TEST_F(DeadStoreTest, GracefulShutdownEndsInTime) {
  KillStore();
  const absl::Time start = absl::Now();
  for (const absl::Status& status : job_.ShutdownAll()) {
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kDeadlineExceeded,
                                 HasSubstr("cannot be reached")));
  }
  EXPECT_LT(absl::Now() - start, kLimit);
}

TEST_F(DeadStoreTest, StopEndsInTime) {
  KillStore();
  const absl::Time start = absl::Now();
  EXPECT_THAT(job_.agent(0).Shutdown(/*graceful=*/false), IsOk());
  EXPECT_LT(absl::Now() - start, kLimit);
}

}  // namespace
}  // namespace hawser::tests
