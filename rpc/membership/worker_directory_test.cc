#include "rpc/membership/worker_directory.h"

#include <atomic>
#include <barrier>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "store/hash/store.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::Ne;
using ::testing::Optional;

WorkerInfo Worker(int rank, uint64_t incarnation) {
  return {.name = "w" + std::to_string(rank),
          .id = WorkerId(rank),
          .incarnation = Incarnation{incarnation},
          .address = "inproc:" + std::to_string(rank)};
}

class WorkerDirectoryTest : public testing::Test {
 protected:
  store::HashStore store_;
  WorkerDirectory worker_directory_{&store_, "job"};
  MembershipLog log_{&store_, "job"};
  const WorkerDirectory::ClaimPolicy default_policy_;
};

TEST_F(WorkerDirectoryTest, FindsRegisteredWorkers) {
  ASSERT_THAT(worker_directory_.Register(Worker(3, 7), default_policy_),
              IsOk());
  EXPECT_THAT(worker_directory_.FindByName("w3"),
              IsOkAndHolds(Optional(Worker(3, 7))));
  EXPECT_THAT(worker_directory_.FindById(WorkerId(3)),
              IsOkAndHolds(Optional(Worker(3, 7))));
  EXPECT_THAT(worker_directory_.FindByName("w4"),
              IsOkAndHolds(Eq(std::nullopt)));
}

TEST_F(WorkerDirectoryTest, RegisteringTwiceIsTheSameAsOnce) {
  ASSERT_THAT(worker_directory_.Register(Worker(3, 7), default_policy_),
              IsOk());
  EXPECT_THAT(worker_directory_.Register(Worker(3, 7), default_policy_),
              IsOk());
}

TEST_F(WorkerDirectoryTest, HolderOfANameOrRankIsNamed) {
  ASSERT_THAT(worker_directory_.Register(Worker(3, 7), default_policy_),
              IsOk());
  EXPECT_THAT(worker_directory_.Register(Worker(3, 8), default_policy_),
              StatusIs(absl::StatusCode::kAlreadyExists,
                       HasSubstr("0000000000000007")));
  WorkerInfo other = Worker(3, 8);
  other.name = "other";
  EXPECT_THAT(worker_directory_.Register(other, default_policy_),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("rank 3")));
  // The name that it had claimed is free again.
  EXPECT_THAT(worker_directory_.FindByName("other"),
              IsOkAndHolds(Eq(std::nullopt)));
}

// F18 of docs/reliability.md.
TEST_F(WorkerDirectoryTest, OneOfManyConcurrentClaimsSucceeds) {
  constexpr int kRaces = 1000;
  constexpr int kRacers = 4;
  std::atomic<int> num_winners = 0;
  // Each race starts when the previous one has been checked.
  std::barrier line(kRacers);
  std::vector<std::future<void>> racers;
  for (int racer = 0; racer < kRacers; ++racer) {
    racers.push_back(std::async(std::launch::async, [&, racer] {
      WorkerDirectory directory(&store_, "job");
      for (int race = 0; race < kRaces; ++race) {
        WorkerInfo worker = Worker(race, 1 + racer);
        // Half of them claim the same rank under another name.
        if (racer % 2 == 1) worker.name += "b";
        line.arrive_and_wait();
        const auto registered = directory.Register(worker, default_policy_);
        if (registered.ok()) ++num_winners;
        line.arrive_and_wait();
        EXPECT_EQ(num_winners, race + 1);
        const auto holder = directory.FindById(WorkerId(race));
        // No early return, since others wait at the barrier.
        EXPECT_THAT(holder, IsOkAndHolds(Ne(std::nullopt)));
        if (!holder.ok() || !holder->has_value()) continue;
        EXPECT_EQ(registered.ok(), **holder == worker);
        EXPECT_THAT(directory.FindByName((*holder)->name),
                    IsOkAndHolds(*holder));
        if (registered.ok()) continue;
        EXPECT_THAT(registered, StatusIs(absl::StatusCode::kAlreadyExists));
      }
    }));
  }
  for (std::future<void>& racer : racers) racer.get();
}

TEST_F(WorkerDirectoryTest, NameOfALostWorkerIsFree) {
  ASSERT_THAT(worker_directory_.Register(Worker(3, 7), default_policy_),
              IsOk());
  // Ignored, since the reporter was lost before.
  ASSERT_THAT(log_.Append(LostEvent(Incarnation{5}, Incarnation{6}, "")),
              IsOk());
  ASSERT_THAT(log_.Append(LostEvent(Incarnation{7}, Incarnation{5}, "")),
              IsOk());
  EXPECT_THAT(worker_directory_.Register(Worker(3, 8), default_policy_),
              StatusIs(absl::StatusCode::kAlreadyExists));
  ASSERT_THAT(log_.Append(LostEvent(Incarnation{7}, Incarnation{6}, "")),
              IsOk());
  EXPECT_THAT(worker_directory_.Register(Worker(3, 8), default_policy_),
              IsOkAndHolds(ElementsAre(Worker(3, 7))));
  EXPECT_THAT(worker_directory_.FindByName("w3"),
              IsOkAndHolds(Optional(Worker(3, 8))));
}

TEST_F(WorkerDirectoryTest, OnlyALapsedLeaseReleasesTheName) {
  ASSERT_THAT(log_.Renew(Incarnation{7}, 1, absl::Hours(1)), IsOk());
  ASSERT_THAT(worker_directory_.Register(Worker(3, 7), default_policy_),
              IsOk());
  int probes = 0;
  WorkerDirectory::ClaimPolicy policy{
      .silent_limit = absl::Milliseconds(60),
      .unreachable_limit = absl::Milliseconds(30),
      .interval = absl::Milliseconds(5),
      .patience = absl::Seconds(30)};
  policy.probe = [&](const WorkerInfo&) {
    EXPECT_THAT(log_.Renew(Incarnation{7}, 2 + ++probes, absl::Hours(1)),
                IsOk());
    return absl::OkStatus();
  };
  EXPECT_THAT(worker_directory_.Register(Worker(3, 8), policy),
              StatusIs(absl::StatusCode::kAlreadyExists,
                       HasSubstr("0000000000000007")));
  policy.probe = nullptr;
  EXPECT_THAT(worker_directory_.Register(Worker(3, 8), policy), IsOk());
}

TEST_F(WorkerDirectoryTest,
       HolderWhoseAddressBelongsToAnotherLosesTheNameAtOnce) {
  ASSERT_THAT(log_.Renew(Incarnation{7}, 1, absl::Hours(1)), IsOk());
  ASSERT_THAT(worker_directory_.Register(Worker(3, 7), default_policy_),
              IsOk());
  EXPECT_THAT(
      worker_directory_.Register(
          Worker(3, 8), {.silent_limit = absl::Hours(1),
                         .unreachable_limit = absl::Hours(1),
                         .interval = absl::Milliseconds(5),
                         .patience = absl::Hours(1),
                         .probe =
                             [](const WorkerInfo&) {
                               return absl::FailedPreconditionError("another");
                             }}),
      IsOk());
}

// Name and rank are not waited for one after the other.
TEST_F(WorkerDirectoryTest, AHolderOfNameAndRankIsAwaitedOnce) {
  ASSERT_THAT(log_.Renew(Incarnation{7}, 1, absl::Hours(1)), IsOk());
  ASSERT_THAT(worker_directory_.Register(Worker(3, 7), default_policy_),
              IsOk());
  int probes = 0;
  EXPECT_THAT(worker_directory_.Register(
                  Worker(3, 8), {.silent_limit = absl::Hours(1),
                                 .unreachable_limit = absl::ZeroDuration(),
                                 .interval = absl::Milliseconds(5),
                                 .patience = absl::Hours(1),
                                 .probe =
                                     [&](const WorkerInfo&) {
                                       ++probes;
                                       return absl::UnavailableError("gone");
                                     }}),
              IsOkAndHolds(ElementsAre(Worker(3, 7))));
  EXPECT_EQ(probes, 1);
}

TEST_F(WorkerDirectoryTest, WithdrawingFreesTheName) {
  ASSERT_THAT(worker_directory_.Register(Worker(3, 7), default_policy_),
              IsOk());
  // Another incarnation cannot withdraw it.
  EXPECT_THAT(worker_directory_.Withdraw(Worker(3, 8)), IsOk());
  EXPECT_THAT(worker_directory_.Register(Worker(3, 8), default_policy_),
              StatusIs(absl::StatusCode::kAlreadyExists));
  EXPECT_THAT(worker_directory_.Withdraw(Worker(3, 7)), IsOk());
  EXPECT_THAT(worker_directory_.Register(Worker(3, 8), default_policy_),
              IsOk());
}

TEST_F(WorkerDirectoryTest, JobsAreSeparate) {
  WorkerDirectory other(&store_, "other");
  ASSERT_THAT(worker_directory_.Register(Worker(3, 7), default_policy_),
              IsOk());
  EXPECT_THAT(other.Register(Worker(3, 8), default_policy_), IsOk());
}

TEST_F(WorkerDirectoryTest, GroupsMustAgree) {
  EXPECT_THAT(worker_directory_.JoinGroup(4), IsOk());
  EXPECT_THAT(worker_directory_.JoinGroup(4), IsOk());
  EXPECT_THAT(worker_directory_.JoinGroup(5),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("4")));
  EXPECT_THAT(worker_directory_.JoinGroup(std::nullopt),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(WorkerDirectoryTest, BarriersTellIncarnationsApart) {
  const WorkerInfo coordinator = Worker(1, 5);
  store::Barrier barrier =
      worker_directory_.BarrierOf("left", coordinator.incarnation);
  const std::vector<store::Barrier::Participant> restarted = {
      WorkerDirectory::ParticipantOf(Worker(0, 2))};
  ASSERT_THAT(barrier.Arrive(WorkerDirectory::ParticipantOf(Worker(0, 1)), ""),
              IsOk());
  EXPECT_THAT(barrier.CheckAllArrived(restarted),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       HasSubstr("in time: rank 0")));
  ASSERT_THAT(barrier.Arrive(restarted[0], ""), IsOk());
  EXPECT_THAT(barrier.CheckAllArrived(restarted), IsOk());
  // Of an earlier run of the job.
  store::Barrier other =
      worker_directory_.BarrierOf("left", Worker(1, 6).incarnation);
  EXPECT_THAT(other.CheckAllArrived(restarted),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
}

TEST_F(WorkerDirectoryTest, MalformedRecordIsReported) {
  ASSERT_THAT(store_.Set("rpc/job/name/w0", "\xff\xff"), IsOk());
  EXPECT_THAT(worker_directory_.FindByName("w0"),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("name/w0")));
}

}  // namespace
}  // namespace hawser::rpc
