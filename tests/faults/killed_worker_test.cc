// Tests of workers that die, are replaced, or start with a name in use.

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "async/testing/nightly.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/identity/worker_info.h"
#include "rpc/testing/raw_client.h"
#include "tests/faults/faults_test_fixture.h"
#include "tests/faults/worker_functions.h"
#include "tests/faults/worker_process.h"

namespace hawser::tests {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const int kKills = async::NightlyOr(50, 2);
const int kMisroutes = async::NightlyOr(100'000, 2'000);
const int kRaces = async::NightlyOr(1000, 2);
constexpr int kRacesAtOnce = 8;

// Fixture with the default unreachable_limit, since an unused port is detected
// even if the machine is busy.
class KilledWorkerTest : public BothWaysFaultsTest {
 protected:
  KilledWorkerTest()
      : BothWaysFaultsTest({.silent_limit = kLiveness.silent_limit}) {}
};
class NamedWorkerTest : public FaultsTest {};

TEST_P(KilledWorkerTest, CallersFailAtOnceAndTheNameIsReused) {
  WorkerProcess* a = &Start("a", 1);
  ASSERT_TRUE(a->AwaitReady());
  for (int i = 0; i < kKills; ++i) {
    const absl::StatusOr<rpc::WorkerInfo> old = driver().FindWorker("a");
    ASSERT_THAT(old, IsOk());
    async::Future<void> held =
        driver().Async("a", {.timeout = rpc::kNoTimeout}, kHold, 1);
    AwaitBegun("a", 1);
    const absl::Time killed = absl::Now();
    a->Signal(SIGKILL);
    const absl::Status status = held.Wait();
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable));
    EXPECT_TRUE(IsAt(status, "a", /*maybe_applied=*/true)) << status;
    EXPECT_LT(absl::Now() - killed, std::max(absl::Seconds(3), kSlack));

    a = &Start("a", 1);
    ASSERT_TRUE(a->AwaitReady());
    EXPECT_LT(absl::Now() - killed, absl::Seconds(5) + kSlack);
    EXPECT_NE(a->incarnation(), rpc::ToString(old->incarnation));
    EXPECT_TRUE(AwaitEvent(rpc::MemberEvent::Kind::kLost, "a", kSlack));
    EXPECT_THAT(driver().Sync("a", kApply, 1), IsOkAndHolds(1));
    EXPECT_THAT(driver().Sync(*old, kApply, 2).status(),
                StatusIs(absl::StatusCode::kFailedPrecondition));
    EXPECT_THAT(driver().Sync("a", kLedger), IsOkAndHolds(std::vector{1L}));
  }
}

TEST_P(KilledWorkerTest, F17PortReusedByAnotherWorkerOrJob) {
  for (const std::string job : {"faults", "other"}) {
    WorkerProcess& a = Start("a", 1);
    ASSERT_TRUE(a.AwaitReady());
    const absl::StatusOr<rpc::WorkerInfo> info = driver().FindWorker("a");
    ASSERT_THAT(driver().Sync(*info, kApply, 1), IsOk());
    a.Signal(SIGKILL);
    ASSERT_EQ(a.Wait(), 128 + SIGKILL);
    WorkerProcess& thief = Start("thief", 2, [&](WorkerProcessOptions& o) {
      o.bind_address = info->address;
      o.job = job;
    });
    ASSERT_TRUE(thief.AwaitReady());
    ASSERT_EQ(thief.address(), info->address);
    // Also before the driver has detected the loss of "a".
    do {
      EXPECT_THAT(driver().Sync(*info, kApply, 7).status().code(),
                  testing::AnyOf(absl::StatusCode::kUnavailable,
                                 absl::StatusCode::kFailedPrecondition));
    } while (!driver().IsLost(*info));
    thief.Signal(SIGTERM);
    EXPECT_EQ(thief.ReadLine(), "applied ");
    EXPECT_EQ(thief.Wait(), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, KilledWorkerTest, testing::Bool(), WayName);

TEST_F(NamedWorkerTest, F17MisroutedMessagesAreNeverExecuted) {
  WorkerProcess& a = Start("a", 1);
  ASSERT_TRUE(a.AwaitReady());
  uint64_t incarnation = 0;
  ASSERT_TRUE(absl::SimpleHexAtoi(a.incarnation(), &incarnation));
  rpc::RawClient caller(rpc::RawClient::GrpcOptions{});
  const auto call = [&](const std::string& job, const std::string& name,
                        uint64_t number, int64_t value) {
    return caller
        .Call(a.address(),
              {.job = job,
               .source = "raw",
               .source_rank = rpc::WorkerId(),
               .destination = name,
               .destination_incarnation = rpc::Incarnation{number},
               .autograd = std::nullopt},
              rpc::RawClient::kCallPath,
              rpc::RawClient::FunctionCall(kApply, value))
        .status();
  };
  const uint64_t seed = testing::UnitTest::GetInstance()->random_seed() + 1;
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937_64 random(seed);
  for (int i = 0; i < kMisroutes; ++i) {
    std::string job = "faults";
    std::string name = "a";
    uint64_t number = incarnation;
    // At least one of job, name and incarnation is wrong.
    const uint64_t wrong = random() % 7 + 1;
    if (wrong & 1) job = absl::StrCat("job", random() % 9);
    if (wrong & 2) name = absl::StrCat("worker", random() % 9);
    if (wrong & 4) number ^= random() % 2 == 0 ? 1 : random() | 1;
    // The error names the intended destination and the actual one.
    ASSERT_THAT(
        call(job, name, number, i),
        StatusIs(absl::StatusCode::kFailedPrecondition,
                 AllOf(HasSubstr(wrong & 1 ? job : name),
                       HasSubstr(wrong & 1 ? "faults" : a.incarnation()))));
  }
  EXPECT_THAT(driver().Sync("a", kLedger), IsOkAndHolds(IsEmpty()));
  EXPECT_THAT(call("faults", "a", incarnation, 1), IsOk());
}

// Workers that start at the same time with one name.
struct Race {
  std::string name;
  int first_rank = 0;
  std::vector<WorkerProcess*> racers;
  WorkerProcess* winner = nullptr;
  std::vector<std::string> refusals;
};

// Several races run in parallel, since they mostly wait for leases.
TEST_F(NamedWorkerTest, F18OneOfManyWithTheSameNameJoins) {
  constexpr int kRacers = 4;
  for (int begun = 0; begun < kRaces;) {
    std::vector<Race> races(std::min(kRacesAtOnce, kRaces - begun));
    for (Race& race : races) {
      race.name = absl::StrCat("w", begun);
      race.first_rank = 1 + begun++ * kRacers;
      for (int i = 0; i < kRacers; ++i) {
        // All have the same name, and pairs have the same rank.
        race.racers.push_back(&Start(race.name, race.first_rank + i / 2));
      }
    }
    for (Race& race : races) {
      for (WorkerProcess* racer : race.racers) {
        const std::string line = racer->ReadLine().value_or("nothing");
        if (absl::StartsWith(line, "ready ")) {
          EXPECT_EQ(race.winner, nullptr);
          race.winner = racer;
        } else {
          EXPECT_EQ(racer->Wait(), 3);
          race.refusals.push_back(line);
        }
      }
      ASSERT_NE(race.winner, nullptr);
      const absl::StatusOr<rpc::WorkerInfo> holder =
          driver().FindWorker(race.name);
      ASSERT_THAT(holder, IsOk());
      EXPECT_THAT(race.refusals,
                  testing::Each(testing::AllOf(
                      testing::StartsWith("refused ALREADY_EXISTS"),
                      testing::HasSubstr(rpc::ToString(holder->incarnation)))));
      // The winner keeps serving, also after a later attempt.
      EXPECT_THAT(driver().Sync(*holder, kApply, 1), IsOkAndHolds(1));
      race.racers = {&Start(race.name, race.first_rank + kRacers - 1)};
    }
    for (const Race& race : races) {
      EXPECT_EQ(race.racers[0]->Wait(), 3);
      EXPECT_THAT(driver().Sync(race.name, kApply, 2), IsOkAndHolds(2));
      race.winner->Signal(SIGTERM);
      EXPECT_EQ(race.winner->Wait(), 0);
    }
  }
}

}  // namespace
}  // namespace hawser::tests
