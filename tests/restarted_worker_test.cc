// Tests of contexts, references and optimizers of a restarted worker, before
// other workers know of the restart.

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "async/blocking_region.h"
#include "async/mutex.h"
#include "async/testing/simulated_clock.h"
#include "async/testing/status_matchers.h"
#include "autograd/ops/elementwise.h"
#include "autograd/variable.h"
#include "dist_autograd/dist_autograd.h"
#include "dist_optim/distributed_optimizer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "optim/sgd.h"
#include "rpc/errors/error_detail.h"
#include "rpc/functions/function.h"
#include "rpc/identity/worker_info.h"
#include "rpc/membership/member_event.h"
#include "rpc/testing/agent_test_fixture.h"
#include "rpc/testing/loss_test_service.h"
#include "rpc/testing/simulated_store_link.h"
#include "rref/rref.h"
#include "tensor/tensor.h"
#include "tests/distributed_job.h"

namespace hawser::tests {
namespace {

using dist_autograd::ContextScope;
using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;

inline constexpr rpc::Function<Tensor(Tensor)> kSquare{"restarted.Square"};
// Stores a reference on the worker that is called.
inline constexpr rpc::Function<void(rref::RRef<Tensor>)> kKeep{
    "restarted.Keep"};

Tensor Leaf(double value) {
  Tensor leaf = Tensor::Full({1}, value);
  EXPECT_THAT(autograd::SetRequiresGrad(leaf), IsOk());
  return leaf;
}

// Fixture in which worker 1 calls worker 0, is shut down, and restarts with the
// same name and rank.
class RestartedWorkerTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_THAT(job_.registry().Register(
                    kSquare, [](Tensor x) { return autograd::Mul(x, x); }),
                IsOk());
    ASSERT_THAT(
        job_.registry().Register(kKeep,
                                 [this](rref::RRef<Tensor> reference) {
                                   async::MutexLock lock(&mutex_);
                                   kept_.push_back(std::move(reference));
                                   return absl::OkStatus();
                                 }),
        IsOk());
    // The network uses another clock, in which deadlines must be in the future.
    clock_.AdvanceBy(absl::Hours(24 * 365 * 100));
    Start(0, [this](rpc::AgentOptions& options) {
      options.store = &link_of_0_;
      // Services receive events in order.
      options.num_threads = 1;
      options.services.push_back(std::make_unique<rpc::LossService>(&lost_));
    });
    Start(1);
    ASSERT_THAT(job_.agent(1).Sync("w0", kSquare, Tensor::Ones({1})), IsOk());
  }

  void TearDown() override {
    std::vector<rref::RRef<Tensor>> kept = TakeKept();
    kept.clear();
    job_.StopAll();
  }

  using Change = std::function<void(rpc::AgentOptions& options)>;

  void Start(int rank, const Change& change = nullptr) {
    job_.StartOne(rank, [&](int, rpc::AgentOptions& options) {
      options.clock = &clock_;
      AddServices(options);
      if (change != nullptr) change(options);
    });
  }
  void Restart(const Change& change = nullptr) {
    old_ = job_.agent(1).info();
    ASSERT_THAT(job_.agent(1).Shutdown(/*graceful=*/false), IsOk());
    Start(1, change);
    ASSERT_NE(restarted().info().incarnation, old_.incarnation);
  }
  rpc::Agent& restarted() { return job_.agent(2); }

  // Restart, of which worker 0 reads only in NextRound.
  void RestartUnnoticed() {
    unnoticed_ = true;
    Restart();
  }
  // Waits until the services of worker 0 were notified of the loss of the old
  // worker 1.
  void NextRound() {
    if (unnoticed_) notice_.Notify();
    // The event may arrive after a pause, which begins at any moment.
    while (!lost_.WaitForNotificationWithTimeout(absl::Milliseconds(1))) {
      clock_.AdvanceBy(rpc::AgentOptions().liveness.heartbeat_interval);
    }
    // Those of other services run before this.
    absl::Notification told;
    job_.agent(0).host().executor().Post([&] { told.Notify(); });
    told.WaitForNotification();
  }

  // Sends worker 0 a reference to a new parameter of `owner`.
  void Give(rpc::Agent& owner, double value) {
    const auto parameter = rref::MakeLocal<Tensor>(owner, Leaf(value));
    ASSERT_THAT(parameter, IsOk());
    ASSERT_THAT(owner.Sync("w0", kKeep, *parameter), IsOk());
  }
  std::vector<rref::RRef<Tensor>> TakeKept() {
    async::MutexLock lock(&mutex_);
    return std::exchange(kept_, {});
  }

  // Runs a backward pass of the restarted worker through worker 0 and checks
  // the gradient of `leaf`.
  void ExpectGradient(const ContextScope& context, const Tensor& leaf,
                      const Tensor& squared) {
    ASSERT_THAT(dist_autograd::Backward(restarted(), context.id(), {squared}),
                IsOk());
    const auto gradients =
        dist_autograd::GetGradients(restarted(), context.id());
    ASSERT_THAT(gradients, IsOk());
    const Tensor gradient = dist_autograd::FindGradient(*gradients, leaf);
    ASSERT_TRUE(gradient.defined());
    EXPECT_EQ(*gradient.item<float>(), 6);
  }

  async::SimulatedClock clock_;
  absl::Notification lost_;
  rpc::WorkerInfo old_;
  rpc::TestJob job_;
  // Worker 0 reads no event of the membership until `notice_`.
  std::atomic<bool> unnoticed_{false};
  absl::Notification notice_;
  rpc::SimulatedStoreLink link_of_0_{
      &job_.store(), {.on_read = [this](const std::string& key) {
        if (!unnoticed_ || !absl::StrContains(key, "/members/")) return;
        const async::BlockingRegion region;
        notice_.WaitForNotification();
      }}};
  // Membership reads wait for this, until a context is open.
  absl::Notification opened_;
  const std::thread::id starter_ = std::this_thread::get_id();
  rpc::SimulatedStoreLink link_{&job_.store(),
                                {.on_read = [this](const std::string& key) {
                                  if (std::this_thread::get_id() != starter_ &&
                                      absl::EndsWith(key, "/members/1")) {
                                    opened_.WaitForNotification();
                                  }
                                }}};
  async::Mutex mutex_;
  std::vector<rref::RRef<Tensor>> kept_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(RestartedWorkerTest, ContextOutlivesTheLossOfThePredecessor) {
  RestartUnnoticed();
  const auto context = ContextScope::Open(restarted());
  ASSERT_THAT(context, IsOk());
  const Tensor leaf = Leaf(3);
  const auto squared = restarted().Sync("w0", kSquare, leaf);
  ASSERT_THAT(squared, IsOk());
  NextRound();
  EXPECT_EQ(NumContexts(job_.agent(0)), 1u);
  ExpectGradient(**context, leaf, *squared);
}

TEST_F(RestartedWorkerTest, ContextOfThePredecessorEnds) {
  auto context = ContextScope::Open(job_.agent(1));
  ASSERT_THAT(context, IsOk());
  ASSERT_THAT(job_.agent(1).Sync("w0", kSquare, Leaf(3)), IsOk());
  EXPECT_EQ(NumContexts(job_.agent(0)), 1u);
  Restart();
  NextRound();
  EXPECT_EQ(NumContexts(job_.agent(0)), 0u);
}

// The restarted worker reads of the loss when it already has a context.
TEST_F(RestartedWorkerTest, OwnContextOutlivesThePastLossOfThePredecessor) {
  Restart([&](rpc::AgentOptions& options) {
    options.store = &link_;
    // Services receive events in order.
    options.num_threads = 1;
  });
  const auto context = ContextScope::Open(restarted());
  ASSERT_THAT(context, IsOk());
  const Tensor leaf = Leaf(3);
  const auto squared = restarted().Sync("w0", kSquare, leaf);
  opened_.Notify();
  ASSERT_THAT(squared, IsOk());
  absl::Notification joined;
  const rpc::Incarnation self = restarted().info().incarnation;
  restarted().WatchMembers([&](const rpc::MemberEvent& event) {
    if (event.worker.incarnation == self) joined.Notify();
  });
  joined.WaitForNotification();
  absl::Notification told;
  restarted().host().executor().Post([&] { told.Notify(); });
  told.WaitForNotification();
  ExpectGradient(**context, leaf, *squared);
}

TEST_F(RestartedWorkerTest, ReferenceOutlivesTheLossOfThePredecessor) {
  Give(job_.agent(1), 3);
  RestartUnnoticed();
  Give(restarted(), 5);
  NextRound();
  const std::vector<rref::RRef<Tensor>> kept = TakeKept();
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_THAT(kept[0].ToHere(), StatusIs(absl::StatusCode::kUnavailable));
  const auto value = kept[1].ToHere();
  ASSERT_THAT(value, IsOk());
  EXPECT_EQ(*value->item<float>(), 5);
}

TEST_F(RestartedWorkerTest, OptimizerDistinguishesOldAndNewOwners) {
  Give(job_.agent(1), 3);
  Restart();
  Give(restarted(), 5);
  const std::vector<rref::RRef<Tensor>> kept = TakeKept();
  ASSERT_EQ(kept.size(), 2u);
  const auto optimizer = dist_optim::DistributedOptimizer::Create(
      job_.agent(0), optim::Sgd({.lr = 1}), {kept[1], kept[0]});
  const auto detail = rpc::GetErrorDetail(optimizer.status());
  ASSERT_TRUE(detail.has_value());
  EXPECT_EQ(detail->incarnation, old_.incarnation);
}

}  // namespace
}  // namespace hawser::tests
