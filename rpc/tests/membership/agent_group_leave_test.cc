// Workers of a job with a world size, which leave it together: in one thread
// and simulated time.

#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/future.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/agent/agent.h"
#include "rpc/agent/agent_options.h"
#include "rpc/agent/service.h"
#include "rpc/errors/error_detail.h"
#include "rpc/testing/cluster_simulation.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::HasSubstr;

constexpr Function<void()> kTouch{"test.Touch"};
constexpr Function<void()> kTouchNext{"test.TouchNext"};
constexpr absl::Duration kShutdownTimeout = absl::Seconds(30);

// Drains with `result`; counts how often it is asked to.
class DrainingService final : public Service {
 public:
  DrainingService(absl::Status result, int* num_drains)
      : result_(std::move(result)), num_drains_(*num_drains) {}

  std::string_view name() const override { return "draining"; }
  absl::Status Start(ServiceHost&) override { return absl::OkStatus(); }
  async::Future<void> Drain(async::MonotonicTime) override {
    ++num_drains_;
    return async::MakeReadyFuture<void>(result_);
  }

 private:
  const absl::Status result_;
  int& num_drains_;
};

class AgentGroupLeaveTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_THAT(job_.registry().Register(kTouch, [this] { ++num_touches_; }),
                IsOk());
    // Ends before the call that it makes.
    ASSERT_THAT(
        job_.registry().Register(kTouchNext,
                                 [this] {
                                   touched_ = CurrentCall::Get()->agent().Async(
                                       "w2", kTouch);
                                 }),
        IsOk());
    job_.StartTogether();
    ASSERT_EQ(job_.failure(), "");
  }

  // Each begins to leave a while after the one before.
  void LeaveAll(const std::vector<int>& workers) {
    for (const int worker : workers) {
      leaving_[worker] = job_.agent(worker)->Leave();
      job_.Advance(absl::Milliseconds(500));
    }
  }
  bool HasLeft(int worker) const { return leaving_[worker]->ready(); }
  absl::Status ResultOf(int worker) const { return leaving_[worker]->result(); }

  int num_touches_ = 0;
  int num_drains_ = 0;
  std::optional<async::Future<void>> touched_;
  std::optional<async::Future<void>> leaving_[3];
  // Of the drain of the service of w1.
  absl::Status drained_;
  ClusterSimulation job_{
      1,
      {.num_workers = 3, .group = true, .configure = [this](AgentOptions& o) {
         o.shutdown_timeout = kShutdownTimeout;
         o.services.push_back(std::make_unique<DrainingService>(
             o.rank == 1 ? drained_ : absl::OkStatus(), &num_drains_));
       }}};
};

TEST_F(AgentGroupLeaveTest, AllGoOnceAllHaveCome) {
  LeaveAll({0, 1});
  EXPECT_FALSE(HasLeft(0));
  // All serve until then.
  EXPECT_EQ(num_drains_, 0);
  LeaveAll({2});
  EXPECT_EQ(num_drains_, 3);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(HasLeft(i)) << i;
    EXPECT_THAT(ResultOf(i), IsOk());
    EXPECT_EQ(job_.HolderOf(i), std::nullopt);
  }
}

TEST_F(AgentGroupLeaveTest, WhoWaitsServesOn) {
  LeaveAll({0, 1});
  const async::Future<void> first = job_.agent(2)->Async("w0", kTouchNext);
  job_.Advance(absl::Milliseconds(100));
  ASSERT_TRUE(first.ready());
  EXPECT_THAT(first.result(), IsOk());
  // Which has begun to leave, and calls nevertheless.
  ASSERT_TRUE(touched_.has_value() && touched_->ready());
  EXPECT_THAT(touched_->result(), IsOk());
  EXPECT_EQ(num_touches_, 1);
  LeaveAll({2});
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(HasLeft(i)) << i;
}

TEST_F(AgentGroupLeaveTest, LostWorkerEndsTheWaitingOfTheOthersWithItsName) {
  LeaveAll({0, 1});
  const WorkerInfo lost = job_.agent(2)->info();
  job_.Kill(2);
  job_.Advance(absl::Seconds(5));
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(HasLeft(i)) << i;
    EXPECT_THAT(ResultOf(i),
                StatusIs(absl::StatusCode::kUnavailable, HasSubstr("'w2'")));
    const std::optional<ErrorDetail> detail = GetErrorDetail(ResultOf(i));
    ASSERT_TRUE(detail.has_value());
    EXPECT_EQ(detail->incarnation, lost.incarnation);
  }
}

TEST_F(AgentGroupLeaveTest, DeadlineNamesTheRanksThatDidNotCome) {
  LeaveAll({0, 2});
  job_.Advance(kShutdownTimeout - absl::Seconds(2));
  EXPECT_FALSE(HasLeft(0));
  job_.Advance(absl::Seconds(2));
  ASSERT_TRUE(HasLeft(0));
  EXPECT_THAT(ResultOf(0), StatusIs(absl::StatusCode::kDeadlineExceeded,
                                    HasSubstr("arrive in time: rank 1")));
}

TEST_F(AgentGroupLeaveTest, StoreThatComesBackIsAskedAgain) {
  LeaveAll({0, 1});
  job_.PartitionStore(2);
  LeaveAll({2});
  job_.Advance(absl::Seconds(1));
  EXPECT_FALSE(HasLeft(2));
  job_.HealStore(2);
  job_.Advance(absl::Seconds(1));
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(HasLeft(i)) << i;
    EXPECT_THAT(ResultOf(i), IsOk());
  }
}

TEST_F(AgentGroupLeaveTest, StoreThatStaysAwayIsGivenUpAtTheDeadline) {
  for (int i = 0; i < 3; ++i) job_.PartitionStore(i);
  LeaveAll({0, 1, 2});
  job_.Advance(kShutdownTimeout);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(HasLeft(i)) << i;
    EXPECT_THAT(ResultOf(i), StatusIs(absl::StatusCode::kUnavailable,
                                      HasSubstr("out of reach")));
  }
}

class AgentGroupDrainTest : public AgentGroupLeaveTest {
 protected:
  AgentGroupDrainTest() {
    drained_ = absl::DataLossError("half of it is gone");
  }
};

TEST_F(AgentGroupDrainTest, DrainThatFailsKeepsNobody) {
  LeaveAll({0, 1, 2});
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(HasLeft(i)) << i;
    EXPECT_EQ(ResultOf(i), i == 1 ? drained_ : absl::OkStatus());
  }
}

}  // namespace
}  // namespace hawser::rpc
