// A worker without a world size that leaves, in one thread and simulated time.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/executor.h"
#include "async/future.h"
#include "async/task.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/agent/agent.h"
#include "rpc/agent/agent_options.h"
#include "rpc/agent/service.h"
#include "rpc/errors/error_detail.h"
#include "rpc/testing/cluster_simulation.h"
#include "tensor/tensor.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::HasSubstr;

constexpr Function<void()> kHold{"test.Hold"};
constexpr Function<void()> kLeave{"test.Leave"};
constexpr Function<tensor::Tensor()> kHoldMuch{"test.HoldMuch"};
constexpr absl::Duration kShutdownTimeout = absl::Seconds(30);

// Drains when a test says so.
class SlowService final : public Service {
 public:
  SlowService(async::Future<void> drained, bool* inside_a_call)
      : drained_(std::move(drained)), inside_a_call_(*inside_a_call) {}

  std::string_view name() const override { return "slow"; }
  absl::Status Start(ServiceHost&) override { return absl::OkStatus(); }
  async::Future<void> Drain(async::MonotonicTime) override {
    inside_a_call_ = CurrentCall::Get() != nullptr;
    return drained_;
  }

 private:
  const async::Future<void> drained_;
  bool& inside_a_call_;
};

// Has all its threads blocked when a test says so.
class BusyExecutor final : public async::Executor {
 public:
  // Runs closures on `target` while not busy.
  explicit BusyExecutor(async::Executor* target) : target_(*target) {}

  void Post(absl::AnyInvocable<void() &&> closure) override {
    if (busy_) {
      queue_.emplace_back(std::move(closure));
    } else {
      target_.Post(std::move(closure));
    }
  }
  void SetBusy(bool busy) {
    busy_ = busy;
    if (busy_) return;
    for (async::Task& task : std::exchange(queue_, {}))
      target_.Post(
          [task = std::move(task)]() mutable { std::move(task).Run(); });
  }

 private:
  async::Executor& target_;
  bool busy_ = false;
  std::vector<async::Task> queue_;
};

class AgentLeaveTest : public testing::Test {
 protected:
  AgentLeaveTest() {
    EXPECT_THAT(job_.registry().Register(kHold, [this] { return hold_; }),
                IsOk());
    EXPECT_THAT(
        job_.registry().Register(
            kHoldMuch,
            [this] {
              return hold_.Then(
                  [](const absl::Status&) -> absl::StatusOr<tensor::Tensor> {
                    return tensor::Tensor::Arange(int64_t{128} << 10);
                  });
            }),
        IsOk());
    EXPECT_THAT(
        job_.registry().Register(
            kLeave, [this] { left_ = CurrentCall::Get()->agent().Leave(); }),
        IsOk());
    job_.RestartDeparted();
    job_.Advance(absl::Seconds(1));
  }

  async::Future<void> Hold(int from, int to) {
    return job_.agent(from)->Async(job_.agent(to)->info(),
                                   {.timeout = kNoTimeout}, kHold);
  }

  // Just before the deadline of `left`, which has just begun.
  void WaitTillTheDeadline(const async::Future<void>& left) {
    job_.Advance(kShutdownTimeout - absl::Milliseconds(100));
    EXPECT_FALSE(left.ready());
  }

  // Passes the deadline, at which `left` tells what it waited for.
  void ExpectLate(const async::Future<void>& left, const std::string& what) {
    job_.Advance(absl::Milliseconds(200));
    ASSERT_TRUE(left.ready());
    EXPECT_THAT(left.result(),
                StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr(what)));
  }

  async::Promise<void> drained_;
  async::Future<void> drain_ = drained_.future();
  async::Promise<void> held_;
  async::Future<void> hold_ = held_.future();
  std::optional<async::Future<void>> left_;
  bool drains_inside_a_call_ = false;
  // Of w0.
  std::optional<BusyExecutor> executor_;
  ClusterSimulation job_{
      1, {.num_workers = 2, .configure = [this](AgentOptions& options) {
            options.shutdown_timeout = kShutdownTimeout;
            if (options.name == "w0") {
              options.executor = &executor_.emplace(options.executor);
            }
            options.services.push_back(
                std::make_unique<SlowService>(drain_, &drains_inside_a_call_));
          }}};
};

TEST_F(AgentLeaveTest, FinishesWhatItServesAndRefusesWhatIsNew) {
  drained_.Set(absl::OkStatus());
  const async::Future<void> served = Hold(0, 1);
  job_.Advance(absl::Milliseconds(100));
  const async::Future<void> left = job_.agent(1)->Leave();
  job_.Advance(absl::Milliseconds(100));
  const async::Future<void> late = Hold(0, 1);
  job_.Advance(absl::Milliseconds(100));
  EXPECT_FALSE(left.ready());
  ASSERT_TRUE(late.ready());
  EXPECT_THAT(late.result(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_FALSE(GetErrorDetail(late.result())->maybe_applied);
  EXPECT_EQ(job_.HolderOf(1), std::nullopt);
  held_.Set(absl::OkStatus());
  job_.Advance(absl::Milliseconds(100));
  ASSERT_TRUE(left.ready());
  EXPECT_THAT(left.result(), IsOk());
  ASSERT_TRUE(served.ready());
  EXPECT_THAT(served.result(), IsOk());
}

// What lies in its memory is gone with it.
TEST_F(AgentLeaveTest, StaysUntilItsRepliesAreRead) {
  drained_.Set(absl::OkStatus());
  const async::Future<tensor::Tensor> served = job_.agent(0)->Async(
      job_.agent(1)->info(), {.timeout = kNoTimeout}, kHoldMuch);
  job_.Advance(absl::Milliseconds(100));
  const async::Future<void> left = job_.agent(1)->Leave();
  job_.Advance(absl::Milliseconds(100));
  // A reply of that size is read there.
  executor_->SetBusy(true);
  held_.Set(absl::OkStatus());
  job_.Advance(absl::Milliseconds(100));
  EXPECT_FALSE(served.ready());
  EXPECT_FALSE(left.ready());
  executor_->SetBusy(false);
  job_.Advance(absl::Milliseconds(100));
  ASSERT_TRUE(served.ready());
  EXPECT_THAT(served.result(), IsOk());
  ASSERT_TRUE(left.ready());
  EXPECT_THAT(left.result(), IsOk());
}

// The leaver does not notify a worker that never called it, and this worker
// cannot read the log.
TEST_F(AgentLeaveTest, RefusesCallsOfThoseThatHaveNotHeardOfIt) {
  drained_.Set(absl::OkStatus());
  job_.PartitionStore(0);
  const WorkerInfo leaver = job_.agent(1)->info();
  const async::Future<void> left = job_.agent(1)->Leave();
  job_.Advance(absl::Milliseconds(1));
  ASSERT_TRUE(left.ready());
  EXPECT_THAT(left.result(), IsOk());
  ASSERT_FALSE(job_.agent(0)->IsLost(leaver));
  const async::Future<void> late = Hold(0, 1);
  job_.Advance(absl::Milliseconds(10));
  ASSERT_TRUE(late.ready());
  EXPECT_THAT(late.result(), StatusIs(absl::StatusCode::kUnavailable,
                                      HasSubstr("is leaving the job")));
  EXPECT_FALSE(GetErrorDetail(late.result())->maybe_applied);
}

TEST_F(AgentLeaveTest, StaysForCallsThatItMadeWhileServicesDrained) {
  const async::Future<void> left = job_.agent(1)->Leave();
  job_.Advance(absl::Milliseconds(100));
  const async::Future<void> own = Hold(1, 0);
  drained_.Set(absl::OkStatus());
  job_.Advance(absl::Milliseconds(100));
  EXPECT_FALSE(left.ready());
  EXPECT_NE(job_.HolderOf(1), std::nullopt);
  held_.Set(absl::OkStatus());
  job_.Advance(absl::Milliseconds(100));
  ASSERT_TRUE(own.ready());
  EXPECT_THAT(own.result(), IsOk());
  ASSERT_TRUE(left.ready());
  EXPECT_THAT(left.result(), IsOk());
}

TEST_F(AgentLeaveTest, OwnCallsThatDoNotEndAreNamedAtTheDeadline) {
  const async::Future<void> own = Hold(1, 0);
  job_.Advance(absl::Milliseconds(100));
  const async::Future<void> left = job_.agent(1)->Leave();
  WaitTillTheDeadline(left);
  ExpectLate(left, "1 own calls");
  EXPECT_FALSE(own.ready());
}

TEST_F(AgentLeaveTest, ServiceThatDoesNotDrainIsNamedAtTheDeadline) {
  const async::Future<void> left = job_.agent(1)->Leave();
  WaitTillTheDeadline(left);
  EXPECT_NE(job_.HolderOf(1), std::nullopt);
  ExpectLate(left, "service slow");
  // It has gone nevertheless.
  EXPECT_EQ(job_.HolderOf(1), std::nullopt);
}

TEST_F(AgentLeaveTest, InboundCallsThatDoNotEndAreNamedAtTheDeadline) {
  drained_.Set(absl::OkStatus());
  const async::Future<void> served = Hold(0, 1);
  job_.Advance(absl::Milliseconds(100));
  const async::Future<void> left = job_.agent(1)->Leave();
  WaitTillTheDeadline(left);
  ExpectLate(left, "1 inbound calls");
  EXPECT_FALSE(served.ready());
}

// By default silence counts from 3 s on.
TEST_F(AgentLeaveTest, LeaveNoticeIsWaitedForNoLongerThanSilence) {
  drained_.Set(absl::OkStatus());
  held_.Set(absl::OkStatus());
  const async::Future<void> met = Hold(1, 0);
  job_.Advance(absl::Milliseconds(100));
  ASSERT_TRUE(met.ready());
  job_.Block(1, 0, true);
  const async::Future<void> left = job_.agent(1)->Leave();
  job_.Advance(absl::Milliseconds(2900));
  EXPECT_FALSE(left.ready());
  job_.Advance(absl::Milliseconds(200));
  ASSERT_TRUE(left.ready());
  EXPECT_THAT(left.result(), IsOk());
}

TEST_F(AgentLeaveTest, MayBeginInsideACall) {
  drained_.Set(absl::OkStatus());
  const async::Future<void> asked = job_.agent(0)->Async("w1", kLeave);
  job_.Advance(absl::Milliseconds(200));
  ASSERT_TRUE(asked.ready());
  EXPECT_THAT(asked.result(), IsOk());
  ASSERT_TRUE(left_.has_value() && left_->ready());
  EXPECT_THAT(left_->result(), IsOk());
  // With its deadline and what else belongs to it.
  EXPECT_FALSE(drains_inside_a_call_);
  EXPECT_THAT(job_.agent(1)->Shutdown(), IsOk());
}

TEST_F(AgentLeaveTest, CallbackOfALeaveThatIsCutShortCannotShutDown) {
  const async::Future<void> left = job_.agent(1)->Leave();
  absl::Status shut_down;
  left.OnReady(
      [&](const absl::Status&) { shut_down = job_.agent(1)->Shutdown(); });
  EXPECT_THAT(job_.agent(1)->Shutdown(/*graceful=*/false), IsOk());
  EXPECT_THAT(shut_down, StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(AgentLeaveTest, ShutdownThatIsNotGracefulCutsItShort) {
  const async::Future<void> own = Hold(1, 0);
  job_.Advance(absl::Milliseconds(100));
  const async::Future<void> left = job_.agent(1)->Leave();
  job_.Advance(absl::Milliseconds(100));
  EXPECT_THAT(job_.agent(1)->Shutdown(/*graceful=*/false), IsOk());
  ASSERT_TRUE(left.ready());
  EXPECT_THAT(left.result(), StatusIs(absl::StatusCode::kCancelled));
  ASSERT_TRUE(own.ready());
  EXPECT_THAT(own.result(), StatusIs(absl::StatusCode::kCancelled));
  const async::Future<void> again = job_.agent(1)->Leave();
  ASSERT_TRUE(again.ready());
  EXPECT_THAT(again.result(), StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(AgentLeaveTest, DoesNotEndWellWhileShutdownSaysThatItFailed) {
  drained_.Set(absl::OkStatus());
  const async::Future<void> served = Hold(0, 1);
  job_.Advance(absl::Milliseconds(100));
  const async::Future<void> left = job_.agent(1)->Leave();
  job_.Advance(absl::Milliseconds(100));
  // It could, while the store is written to.
  job_.clock().CallAfter(absl::Milliseconds(1),
                         [this] { held_.Set(absl::OkStatus()); });
  job_.SlowDownStore(1, true);
  EXPECT_THAT(job_.agent(1)->Shutdown(/*graceful=*/false), IsOk());
  job_.SlowDownStore(1, false);
  EXPECT_TRUE(hold_.ready());
  ASSERT_TRUE(left.ready());
  EXPECT_THAT(left.result(), StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(AgentLeaveTest, IsRefusedAfterShutdown) {
  EXPECT_THAT(job_.agent(1)->Shutdown(/*graceful=*/false), IsOk());
  const async::Future<void> left = job_.agent(1)->Leave();
  ASSERT_TRUE(left.ready());
  EXPECT_THAT(left.result(), StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(AgentLeaveTest, AllWhoAskHaveOneResult) {
  const async::Future<void> first = job_.agent(1)->Leave();
  const async::Future<void> cancelled = job_.agent(1)->Leave();
  EXPECT_TRUE(cancelled.Cancel());
  drained_.Set(absl::DataLossError("the drain failed"));
  job_.Advance(absl::Milliseconds(100));
  ASSERT_TRUE(first.ready());
  for (int i = 0; i < 2; ++i) {
    const async::Future<void> later = job_.agent(1)->Leave();
    ASSERT_TRUE(later.ready());
    EXPECT_EQ(later.result(), first.result());
  }
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(job_.agent(1)->Shutdown(),
                StatusIs(absl::StatusCode::kDataLoss));
  }
}

}  // namespace
}  // namespace hawser::rpc
