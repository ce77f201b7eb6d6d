#include "rpc/membership/group_start.h"

#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/future.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/identity/worker_info.h"
#include "rpc/membership/membership_log.h"
#include "rpc/membership/worker_directory.h"
#include "store/hash/store.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

WorkerInfo Worker(int rank, uint64_t incarnation) {
  return {.name = "w" + std::to_string(rank),
          .id = WorkerId(rank),
          .incarnation = Incarnation{incarnation},
          .address = "inproc:1"};
}

// A worker that starts in a thread of its own.
class GroupStartTest : public testing::Test {
 protected:
  struct Starting {
    std::vector<WorkerInfo> roster;
    std::future<absl::Status> result;
    // What it waits for.
    async::Promise<std::string> waiting;
  };

  std::unique_ptr<Starting> Start(const WorkerInfo& self, int world_size,
                                  absl::Duration timeout = absl::Seconds(30)) {
    auto starting = std::make_unique<Starting>();
    EXPECT_THAT(records_.Register(self, {}), IsOk());
    starting->result = std::async(
        std::launch::async,
        [this, self, world_size, timeout, &starting = *starting] {
          GroupStart start(
              {.self = self,
               .world_size = world_size,
               .job = "job",
               .store = &store_,
               .records = &records_,
               .on_roster =
                   [&](const std::vector<WorkerInfo>& workers) {
                     starting.roster = workers;
                   },
               .on_waiting =
                   [&](const std::string& what) { starting.waiting.Set(what); },
               .note_after = absl::Milliseconds(10)});
          return start.Run(
              async::AddDelay(std::chrono::steady_clock::now(), timeout));
        });
    return starting;
  }

  store::HashStore store_;
  WorkerDirectory records_{&store_, "job"};
};

TEST_F(GroupStartTest, AllKnowAllWhenTheyHaveStarted) {
  std::vector<WorkerInfo> all;
  std::vector<std::unique_ptr<Starting>> starting;
  for (int rank = 0; rank < 4; ++rank) all.push_back(Worker(rank, 10 + rank));
  for (const int rank : {2, 0, 3}) starting.push_back(Start(all[rank], 4));
  for (const auto& worker : starting) {
    EXPECT_EQ(worker->result.wait_for(std::chrono::milliseconds(20)),
              std::future_status::timeout);
  }
  starting.push_back(Start(all[1], 4));
  for (const auto& worker : starting) {
    EXPECT_THAT(worker->result.get(), IsOk());
    EXPECT_EQ(worker->roster, all);
  }
}

TEST_F(GroupStartTest, WorkersSayForWhomTheyWait) {
  const auto other = Start(Worker(2, 3), 4);
  EXPECT_THAT(other->waiting.future().Wait(),
              IsOkAndHolds("ranks 0, 1, 3 of 4"));
  const auto first = Start(Worker(0, 1), 4);
  EXPECT_THAT(first->waiting.future().Wait(), IsOkAndHolds("ranks 1, 3 of 4"));
  const auto second = Start(Worker(1, 2), 4);
  const auto last = Start(Worker(3, 4), 4);
  for (Starting* worker :
       {first.get(), second.get(), other.get(), last.get()}) {
    EXPECT_THAT(worker->result.get(), IsOk());
  }
}

TEST_F(GroupStartTest, WorkerAloneStarts) {
  EXPECT_THAT(Start(Worker(0, 1), 1)->result.get(), IsOk());
}

TEST_F(GroupStartTest, MissingRanksAreNamed) {
  const auto first = Start(Worker(0, 1), 4, absl::Milliseconds(50));
  const auto other = Start(Worker(2, 3), 4, absl::Milliseconds(50));
  for (Starting* worker : {first.get(), other.get()}) {
    EXPECT_THAT(
        worker->result.get(),
        StatusIs(absl::StatusCode::kDeadlineExceeded,
                 AllOf(HasSubstr("in time: 1, 3"), Not(HasSubstr("0,")))));
  }
}

// The record of a worker that died stays until another one takes its rank.
TEST_F(GroupStartTest, WorkerThatDiedIsReplaced) {
  ASSERT_THAT(records_.Register(Worker(1, 7), {}), IsOk());
  const auto first = Start(Worker(0, 1), 3);
  const auto third = Start(Worker(2, 3), 3);
  ASSERT_THAT(store_.Get("rpc/job/start/2/0000000000000003"), IsOk());
  EXPECT_EQ(first->result.wait_for(std::chrono::milliseconds(20)),
            std::future_status::timeout);
  ASSERT_THAT(records_.Withdraw(Worker(1, 7)), IsOk());
  const auto second = Start(Worker(1, 2), 3);
  for (Starting* worker : {first.get(), second.get(), third.get()}) {
    EXPECT_THAT(worker->result.get(), IsOk());
    EXPECT_THAT(worker->roster,
                ElementsAre(Worker(0, 1), Worker(1, 2), Worker(2, 3)));
  }
}

// It died after it had published a roster, with or without having let the
// others start.
TEST_F(GroupStartTest, RankZeroThatDiedIsReplaced) {
  const auto leader = Start(Worker(0, 1), 2, absl::Milliseconds(30));
  EXPECT_THAT(leader->result.get(), Not(IsOk()));
  const auto other = Start(Worker(1, 2), 2);
  EXPECT_EQ(other->result.wait_for(std::chrono::milliseconds(20)),
            std::future_status::timeout);
  ASSERT_THAT(records_.Withdraw(Worker(0, 1)), IsOk());
  const auto successor = Start(Worker(0, 3), 2);
  EXPECT_THAT(successor->result.get(), IsOk());
  EXPECT_THAT(other->result.get(), IsOk());
  EXPECT_THAT(other->roster, ElementsAre(Worker(0, 3), Worker(1, 2)));
}

// The store still has the records of the first run.
TEST_F(GroupStartTest, SecondRunOfTheJobIsNotTakenForTheFirst) {
  {
    const auto first = Start(Worker(0, 1), 2);
    const auto second = Start(Worker(1, 2), 2);
    ASSERT_THAT(first->result.get(), IsOk());
    ASSERT_THAT(second->result.get(), IsOk());
  }
  ASSERT_THAT(records_.Withdraw(Worker(1, 2)), IsOk());
  const auto second = Start(Worker(1, 4), 2);
  EXPECT_EQ(second->result.wait_for(std::chrono::milliseconds(20)),
            std::future_status::timeout);
  ASSERT_THAT(records_.Withdraw(Worker(0, 1)), IsOk());
  const auto first = Start(Worker(0, 3), 2);
  EXPECT_THAT(first->result.get(), IsOk());
  EXPECT_THAT(second->result.get(), IsOk());
  EXPECT_THAT(second->roster, ElementsAre(Worker(0, 3), Worker(1, 4)));
}

TEST_F(GroupStartTest, WorkerReplacedAfterTheStartStartsAtOnce) {
  const auto first = Start(Worker(0, 1), 2);
  const auto second = Start(Worker(1, 2), 2);
  ASSERT_THAT(first->result.get(), IsOk());
  ASSERT_THAT(second->result.get(), IsOk());
  MembershipLog log(&store_, "job");
  ASSERT_THAT(log.Renew(Incarnation{1}, 1, absl::Hours(1)), IsOk());
  ASSERT_THAT(records_.Withdraw(Worker(1, 2)), IsOk());
  EXPECT_THAT(Start(Worker(1, 4), 2)->result.get(), IsOk());
  // Then rank 0 is.
  ASSERT_THAT(records_.Withdraw(Worker(0, 1)), IsOk());
  const auto successor = Start(Worker(0, 5), 2);
  EXPECT_THAT(successor->result.get(), IsOk());
  EXPECT_THAT(successor->roster, ElementsAre(Worker(0, 5), Worker(1, 4)));
}

TEST_F(GroupStartTest, MalformedRosterIsReported) {
  ASSERT_THAT(store_.Set("rpc/job/start/roster", "\xff\xff"), IsOk());
  EXPECT_THAT(Start(Worker(1, 2), 2)->result.get(),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("start/roster")));
}

}  // namespace
}  // namespace hawser::rpc
