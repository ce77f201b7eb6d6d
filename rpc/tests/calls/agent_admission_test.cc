// What is admitted, and what callers that are no members cost.

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "async/blocking_region.h"
#include "async/testing/simulated_clock.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/agent/agent.h"
#include "rpc/identity/worker_info.h"
#include "rpc/testing/agent_test_fixture.h"
#include "rpc/testing/raw_client.h"
#include "rpc/testing/simulated_store_link.h"
#include "store/hash/store.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

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
    EXPECT_THAT(caller_.Call({.name = "non_member",
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
  SimulatedStoreLink link_{&store_, {.on_read = [this](const std::string& key) {
                             if (!absl::StrContains(key, "/name/")) return;
                             ++num_lookups_;
                             if (store_answers_.has_value()) {
                               async::BlockingRegion region;
                               store_answers_->WaitForNotification();
                             }
                           }}};
  TestJob job_;
  RawClient caller_{job_.network().NewTransport()};
};

TEST_F(AgentAdmissionTest, MessagesForOthersAreRefused) {
  const WorkerInfo source = {.name = "non_member",
                             .id = WorkerId(-1),
                             .incarnation = Incarnation{1001},
                             .address = ""};
  const WorkerInfo self = job_.agent(0).info();
  WorkerInfo other = self;
  other.name = "w1";
  WorkerInfo former = self;
  former.incarnation = Incarnation{ToNumber(self.incarnation) ^ 1};
  for (const WorkerInfo& meant : {other, former}) {
    for (const char* path : {"/hawser.v1.WorkerService/Call",
                             "/hawser.v1.WorkerService/Heartbeat"}) {
      EXPECT_THAT(caller_.Call(source, meant, path, ""),
                  StatusIs(absl::StatusCode::kFailedPrecondition,
                           AllOf(HasSubstr(absl::StrCat("'", meant.name, "'")),
                                 HasSubstr(ToString(meant.incarnation)),
                                 HasSubstr(ToString(self)))));
    }
  }
}

TEST_F(AgentAdmissionTest, ClientsThatSayTheyAreNoMembersAreNotLookedUp) {
  for (uint64_t i = 0; i < 20; ++i) {
    Call(WorkerId(-1), Incarnation{1000 + i});
  }
  ASSERT_THAT(job_.agent(0).Shutdown(), IsOk());
  EXPECT_EQ(num_lookups_, 0);
}

TEST_F(AgentAdmissionTest, NonMemberIsLookedUpAgainOnlyAfterAWhile) {
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
