// What callers that are no members cost.

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "async/simulated_clock.h"
#include "async/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/agent.h"
#include "rpc/agent_test_fixture.h"
#include "rpc/made_up_caller.h"
#include "rpc/simulated_store_link.h"
#include "rpc/types.h"
#include "store/hash_store.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;

class AgentAdmissionTest : public testing::Test {
 protected:
  // A worker that reads names in the store only to look callers up.
  void SetUp() override {
    job_.StartOne(0, [this](int, AgentOptions& options) {
      options.store = &link_;
      options.clock = &clock_;
      options.num_threads = 16;
      options.liveness = {.heartbeat_interval = absl::Minutes(10),
                          .silent_limit = absl::Minutes(30)};
    });
    num_lookups_ = 0;
  }

  // Is answered where it arrives.
  void Call(WorkerId rank, Incarnation incarnation) {
    EXPECT_THAT(caller_.Call({.name = "stranger",
                              .id = rank,
                              .incarnation = incarnation,
                              .address = ""},
                             job_.agent(0).info(),
                             "/hawser.v1.WorkerService/Heartbeat", ""),
                IsOk());
  }

  void AwaitLookups(int count) {
    while (num_lookups_ < count) std::this_thread::yield();
  }

  std::atomic<int> num_lookups_{0};
  // Lookups wait for it, if there is one.
  std::optional<absl::Notification> store_answers_;
  async::SimulatedClock clock_;
  store::HashStore store_;
  SimulatedStoreLink link_{&store_, [this](const std::string& key) {
                             if (!absl::StrContains(key, "/name/")) return;
                             ++num_lookups_;
                             if (store_answers_.has_value()) {
                               store_answers_->WaitForNotification();
                             }
                           }};
  TestJob job_;
  MadeUpCaller caller_{job_.network().NewTransport()};
};

TEST_F(AgentAdmissionTest, ClientsThatSayTheyAreNoMembersAreNotLookedUp) {
  for (uint64_t i = 0; i < 20; ++i) {
    Call(WorkerId(-1), Incarnation{1000 + i});
  }
  ASSERT_THAT(job_.agent(0).Shutdown(), IsOk());
  EXPECT_EQ(num_lookups_, 0);
}

TEST_F(AgentAdmissionTest, StrangerIsLookedUpAgainOnlyAfterAWhile) {
  for (int i = 0; i < 20; ++i) {
    Call(WorkerId(5), Incarnation{1001});
    AwaitLookups(1);
  }
  EXPECT_EQ(num_lookups_, 1);
  clock_.AdvanceBy(absl::Seconds(5));
  Call(WorkerId(5), Incarnation{1001});
  AwaitLookups(2);
}

TEST_F(AgentAdmissionTest, FewThreadsAtOnceLookUp) {
  store_answers_.emplace();
  for (uint64_t i = 0; i < 20; ++i) {
    Call(WorkerId(5), Incarnation{1000 + i});
  }
  AwaitLookups(4);
  store_answers_->Notify();
  ASSERT_THAT(job_.agent(0).Shutdown(), IsOk());
  EXPECT_EQ(num_lookups_, 4);
}

}  // namespace
}  // namespace hawser::rpc
