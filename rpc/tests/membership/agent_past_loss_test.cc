// Losses from before a worker joined, and what its services hear of them.

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/mutex.h"
#include "async/testing/simulated_clock.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/agent/agent.h"
#include "rpc/agent/agent_options.h"
#include "rpc/agent/service.h"
#include "rpc/agent/service_host.h"
#include "rpc/identity/worker_info.h"
#include "rpc/membership/membership_log.h"
#include "rpc/membership/worker_directory.h"
#include "rpc/testing/agent_test_fixture.h"
#include "rpc/testing/raw_client.h"
#include "rpc/testing/simulated_store_link.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::testing::ElementsAre;

// Keeps the incarnations of the workers that it is told are lost.
class LossRecorder final : public Service {
 public:
  std::string_view name() const override { return "losses"; }
  absl::Status Start(ServiceHost& host) override {
    host_ = &host;
    return absl::OkStatus();
  }
  void OnWorkerLost(const WorkerInfo& worker, const absl::Status&) override {
    async::MutexLock lock(&mutex_);
    lost_.push_back(worker.incarnation);
    changed_.NotifyAll();
  }

  ServiceHost& host() const { return *host_; }
  // Whether there are any within a millisecond.
  bool HaveCome() {
    const async::MonotonicTime end = async::AddDelay(
        std::chrono::steady_clock::now(), absl::Milliseconds(1));
    async::MutexLock lock(&mutex_);
    while (lost_.empty() && changed_.WaitUntil(&mutex_, end)) {
    }
    return !lost_.empty();
  }
  // Once there are any.
  std::vector<Incarnation> Await() {
    async::MutexLock lock(&mutex_);
    while (lost_.empty()) changed_.Wait(&mutex_);
    return lost_;
  }

 private:
  ServiceHost* host_ = nullptr;
  async::Mutex mutex_;
  async::CondVar changed_;
  std::vector<Incarnation> lost_ ABSL_GUARDED_BY(mutex_);
};

// Worker 0 comes to a job that worker 1 joined, and was lost from.
class AgentPastLossTest : public testing::Test {
 protected:
  AgentPastLossTest() : log_(&job_.store(), AgentOptions().job) {
    EXPECT_THAT(log_.Append(JoinedEvent(past_)), IsOk());
    EXPECT_THAT(log_.Append(LostEvent(past_.incarnation, Incarnation{7}, "")),
                IsOk());
  }

  void StartWorker(const TestJob::Change& change = nullptr) {
    job_.StartOne(0, [&](int rank, AgentOptions& options) {
      options.clock = &clock_;
      // Services are told in order.
      options.num_threads = 1;
      options.services.push_back(std::make_unique<LossRecorder>());
      losses_ = static_cast<LossRecorder*>(options.services.back().get());
      if (change != nullptr) change(rank, options);
    });
  }
  // Until an event has arrived, perhaps after a pause, which begins at any
  // moment.
  void AwaitLoss() {
    while (!losses_->HaveCome()) {
      clock_.AdvanceBy(AgentOptions().liveness.heartbeat_interval);
    }
  }

  static WorkerInfo Worker1(uint64_t incarnation) {
    return {.name = "w1",
            .id = WorkerId(1),
            .incarnation = Incarnation{incarnation},
            .address = ""};
  }

  const WorkerInfo past_ = Worker1(1001);
  const WorkerInfo next_ = Worker1(1002);
  async::SimulatedClock clock_;
  LossRecorder* losses_ = nullptr;
  TestJob job_;
  MembershipLog log_;
};

TEST_F(AgentPastLossTest, ServicesHearOfLossesSinceTheirWorkerJoined) {
  StartWorker();
  ASSERT_THAT(log_.Append(JoinedEvent(next_)), IsOk());
  ASSERT_THAT(log_.Append(LostEvent(next_.incarnation, Incarnation{7}, "")),
              IsOk());
  AwaitLoss();
  EXPECT_THAT(losses_->Await(), ElementsAre(next_.incarnation));
  EXPECT_TRUE(job_.agent(0).IsLost(past_));
  job_.StopAll();
}

// It may have left something here.
TEST_F(AgentPastLossTest, ServicesHearOfAWorkerThatCalledBeforeItsLossWasRead) {
  ASSERT_THAT(
      WorkerDirectory(&job_.store(), AgentOptions().job).Register(past_, {}),
      IsOk());
  absl::Notification called;
  SimulatedStoreLink link(
      &job_.store(), {.on_read = [&](const std::string& key) {
        if (losses_ == nullptr || !absl::EndsWith(key, "/members/1")) return;
        if (!called.HasBeenNotified()) {
          RawClient caller(job_.network().NewTransport());
          EXPECT_THAT(caller.Call(past_, losses_->host().info(),
                                  "/hawser.v1.WorkerService/ListFunctions", ""),
                      IsOk());
          called.Notify();
        }
      }});
  StartWorker([&](int, AgentOptions& options) { options.store = &link; });
  EXPECT_THAT(losses_->Await(), ElementsAre(past_.incarnation));
  job_.StopAll();
}

}  // namespace
}  // namespace hawser::rpc
