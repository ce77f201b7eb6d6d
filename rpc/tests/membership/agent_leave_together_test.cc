// Workers with a world size that leave together, step by step.

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/future.h"
#include "async/testing/status_matchers.h"
#include "gtest/gtest.h"
#include "rpc/agent/agent.h"
#include "rpc/agent/agent_options.h"
#include "rpc/agent/service.h"
#include "rpc/identity/worker_info.h"
#include "rpc/testing/agent_test_fixture.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;

constexpr int kWorkers = 2;
constexpr Function<void()> kHold{"test.Hold"};

// Drains when a test says so.
class SlowService final : public Service {
 public:
  SlowService(std::atomic<int>* num_drains, async::Future<void> drained)
      : num_drains_(*num_drains), drained_(std::move(drained)) {}

  std::string_view name() const override { return "slow"; }
  absl::Status Start(ServiceHost&) override { return absl::OkStatus(); }
  async::Future<void> Drain(async::MonotonicTime) override {
    ++num_drains_;
    return drained_;
  }

 private:
  std::atomic<int>& num_drains_;
  const async::Future<void> drained_;
};

class AgentLeaveTogetherTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_THAT(job_.registry().Register(kHold, [this] { return hold_; }),
                IsOk());
    job_.StartAll(kWorkers, [this](int rank, AgentOptions& options) {
      options.services.push_back(std::make_unique<SlowService>(
          &num_drains_[rank], drained_[rank].future()));
    });
  }

  // Until worker `rank` has arrived at a barrier (docs/rpc/membership.md,
  // "Leaving").
  void AwaitArrival(std::string_view barrier, int rank) {
    const std::string key =
        absl::StrCat("rpc/", AgentOptions().job, "/",
                     absl::string_view(barrier.data(), barrier.size()), "/",
                     ToString(job_.agent(0).info().incarnation), "/", rank, "/",
                     ToString(job_.agent(rank).info().incarnation));
    ASSERT_THAT(job_.store().Wait({&key, 1}, absl::Seconds(20)), IsOk()) << key;
  }

  std::array<std::atomic<int>, kWorkers> num_drains_{};
  std::array<async::Promise<void>, kWorkers> drained_;
  async::Promise<void> held_;
  async::Future<void> hold_ = held_.future();
  TestJob job_;
};

TEST_F(AgentLeaveTogetherTest, ServicesDrainOnceAllHaveBegun) {
  for (auto& drained : drained_) drained.Set(absl::OkStatus());
  const async::Future<void> first = job_.agent(0).Leave();
  AwaitArrival("leaving", 0);
  EXPECT_EQ(num_drains_[0], 0);
  const async::Future<void> second = job_.agent(1).Leave();
  EXPECT_THAT(first.Wait(), IsOk());
  EXPECT_THAT(second.Wait(), IsOk());
  EXPECT_EQ(num_drains_[0], 1);
  EXPECT_EQ(num_drains_[1], 1);
  // So that neither stopped while the other needed it.
  AwaitArrival("left", 0);
  AwaitArrival("left", 1);
}

TEST_F(AgentLeaveTogetherTest, NobodyGoesWhileOthersCall) {
  drained_[0].Set(absl::OkStatus());
  const async::Future<void> first = job_.agent(0).Leave();
  const async::Future<void> second = job_.agent(1).Leave();
  AwaitArrival("quiescence0", 0);
  const async::Future<void> call =
      job_.agent(0).Async("w1", {.timeout = kNoTimeout}, kHold);
  drained_[1].Set(absl::OkStatus());
  AwaitArrival("quiescence1", 1);
  EXPECT_FALSE(first.ready());
  EXPECT_FALSE(second.ready());
  held_.Set(absl::OkStatus());
  EXPECT_THAT(call.Wait(), IsOk());
  EXPECT_THAT(first.Wait(), IsOk());
  EXPECT_THAT(second.Wait(), IsOk());
}

}  // namespace
}  // namespace hawser::rpc
