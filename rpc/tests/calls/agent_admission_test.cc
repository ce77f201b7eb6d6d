// Callers that are not known: what they are refused, cost, and cannot do to
// others.

#include <atomic>
#include <cstdint>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <vector>

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
#include "rpc/functions/function.h"
#include "rpc/identity/worker_info.h"
#include "rpc/membership/worker_directory.h"
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

inline constexpr Function<int64_t()> kOne{"agent_admission_test.One"};

class AgentAdmissionTest : public testing::Test {
 protected:
  // A worker that reads names in the store only to look callers up.
  void SetUp() override {
    ASSERT_THAT(job_.registry().Register(kOne, [] { return int64_t{1}; }),
                IsOk());
    job_.StartOne(0, [this](int, AgentOptions& options) {
      options.store = &link_;
      options.clock = &clock_;
      options.num_threads = 16;
      options.liveness = {.heartbeat_interval = absl::Minutes(10),
                          .silent_limit = absl::Minutes(30)};
    });
    num_lookups_ = 0;
  }
  void TearDown() override { job_.StopAll(); }

  absl::Status Call(const std::string& name, WorkerId rank,
                    Incarnation incarnation, uint64_t call_id = 0) {
    const WorkerInfo& self = job_.agent(0).info();
    return caller_
        .Call(self.address,
              {.job = job_.agent(0).job(),
               .source = name,
               .source_rank = rank,
               .source_incarnation = incarnation,
               .destination = self.name,
               .destination_incarnation = self.incarnation,
               .call_id = call_id,
               .autograd = std::nullopt},
              RawClient::kCallPath, RawClient::FunctionCall(kOne))
        .status();
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
    EXPECT_THAT(Call("client", WorkerId(), Incarnation{1000 + i}), IsOk());
  }
  EXPECT_EQ(num_lookups_, 0);
}

TEST_F(AgentAdmissionTest, NonMembersThatSayTheyAreMembersAreRefused) {
  const auto refused =
      StatusIs(absl::StatusCode::kFailedPrecondition,
               AllOf(HasSubstr("'stranger'"), HasSubstr("is not a member")));
  EXPECT_THAT(Call("stranger", WorkerId(5), Incarnation{1001}), refused);
  EXPECT_THAT(Call("stranger", WorkerId(5), Incarnation{1001}), refused);
  EXPECT_EQ(num_lookups_, 2);
}

TEST_F(AgentAdmissionTest, HeartbeatsAreNotLookedUp) {
  EXPECT_THAT(caller_.Call({.name = "stranger",
                            .id = WorkerId(5),
                            .incarnation = Incarnation{1001},
                            .address = ""},
                           job_.agent(0).info(),
                           "/hawser.v1.WorkerService/Heartbeat", ""),
              IsOk());
  EXPECT_EQ(num_lookups_, 0);
}

// One sender uses one lookup at a time, so that the others get theirs.
TEST_F(AgentAdmissionTest, FewThreadsAtOnceLookUp) {
  store_answers_.emplace();
  std::vector<std::future<absl::Status>> calls;
  const auto call = [&](int sender) {
    calls.push_back(std::async(std::launch::async, [this, sender] {
      return Call(absl::StrCat("stranger", sender), WorkerId(sender),
                  Incarnation{1001});
    }));
  };
  for (int i = 0; i < 10; ++i) call(0);
  AwaitLookups(1);
  for (int sender = 1; sender < 10; ++sender) call(sender);
  AwaitLookups(4);
  EXPECT_EQ(num_lookups_, 4);
  store_answers_->Notify();
  for (std::future<absl::Status>& result : calls) {
    EXPECT_THAT(result.get(), StatusIs(absl::StatusCode::kFailedPrecondition));
  }
}

// The member knows the incarnation of a worker that has just joined, as does
// everyone who reads the store, and calls as itself but with that incarnation.
TEST_F(AgentAdmissionTest, MemberCannotUseUpTheCallsOfAWorkerThatJoins) {
  WorkerDirectory directory(&store_, job_.agent(0).job());
  const auto join = [&](int rank) {
    const WorkerInfo worker = {.name = absl::StrCat("w", rank),
                               .id = WorkerId(rank),
                               .incarnation = NewIncarnation(),
                               .address = ""};
    EXPECT_THAT(directory.Register(worker, {}), IsOk());
    return worker;
  };
  const WorkerInfo member = join(1);
  const WorkerInfo newcomer = join(2);
  // The first of a window that ends far ahead.
  constexpr uint64_t kFarAhead = uint64_t{1} << 40;
  for (const WorkerId& rank : {newcomer.id, member.id}) {
    EXPECT_THAT(Call(member.name, rank, newcomer.incarnation, kFarAhead),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         HasSubstr("is not a member")));
  }
  // As a client it may call; its window is its own.
  EXPECT_THAT(Call(member.name, WorkerId(), newcomer.incarnation, kFarAhead),
              IsOk());
  for (uint64_t number = 1; number <= 3; ++number) {
    EXPECT_THAT(Call(newcomer.name, newcomer.id, newcomer.incarnation, number),
                IsOk());
  }
  // Now it is known.
  EXPECT_THAT(Call(member.name, member.id, newcomer.incarnation, kFarAhead + 1),
              StatusIs(absl::StatusCode::kUnauthenticated));
}

}  // namespace
}  // namespace hawser::rpc
