// Tests of F4: workers that stall for less and for longer than their lease.

#include <csignal>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "async/future.h"
#include "async/testing/nightly.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/identity/worker_info.h"
#include "rpc/testing/raw_client.h"
#include "tests/faults/delays.h"
#include "tests/faults/faults_test_fixture.h"
#include "tests/faults/worker_functions.h"
#include "tests/faults/worker_process.h"

namespace hawser::tests {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;

constexpr char kNightlyOnly[] = "takes minutes: a case of the nightly form";

class StoppedWorkerTest : public BothWaysFaultsTest {
 protected:
  // Stops "a", which pushes to "b", until it is lost and for `longer` after
  // that. Checks that it is fenced.
  void ExpectFencedAfterStop(absl::Duration longer);

  // Starts several kinds of calls to "a", which stalls, and adds the times from
  // their deadlines to their failures.
  void AddOvershoots(Delays& overshoots);
  // Checks the error of a call without a reply.
  void ExpectLate(int64_t id, const absl::Status& status);

  int64_t last_id_ = 0;
  // Calls that were not sent, because this thread ran too late.
  std::set<int64_t> unsent_;
};

TEST_P(StoppedWorkerTest, F4CallsDuringAShortStopFailAtTheirDeadline) {
  WorkerProcess& a = Start("a", 1);
  ASSERT_TRUE(a.AwaitReady());
  ASSERT_THAT(driver().Sync("a", kApply, ++last_id_), IsOk());
  a.Signal(SIGSTOP);
  const absl::Time stopped = absl::Now();
  Delays overshoots;
  while (absl::Now() - stopped < absl::Seconds(1)) AddOvershoots(overshoots);
  overshoots.Record("overshoot");
  EXPECT_LE(overshoots.Percentile(99), absl::Milliseconds(100) + kSlackOfMost);
  EXPECT_LE(overshoots.Percentile(100), absl::Seconds(1) + kSlack);
  a.Signal(SIGCONT);
  // The same incarnation continues.
  EXPECT_THAT(driver().Sync("a", kApply, ++last_id_), IsOk());
  EXPECT_FALSE(driver().IsLost(*driver().FindWorker("a")));
  const absl::StatusOr<std::vector<int64_t>> ledger =
      driver().Sync("a", kLedger);
  ASSERT_THAT(ledger, IsOk());
  for (int64_t id : *ledger) EXPECT_FALSE(unsent_.contains(id)) << id;
}

void StoppedWorkerTest::AddOvershoots(Delays& overshoots) {
  constexpr int kInFlight = 50;
  constexpr absl::Duration kTimeout = absl::Milliseconds(50);
  struct UnderWay {
    int64_t id;
    async::Future<int64_t> reply;
    async::Future<absl::Duration> overshoot;
  };
  std::vector<UnderWay> others;
  for (int i = 0; i < kInFlight; ++i) {
    const int64_t id = ++last_id_;
    const absl::Time start = absl::Now();
    async::Future<int64_t> reply =
        driver().Async("a", {.timeout = kTimeout}, kApply, id);
    others.push_back(
        {id, reply, reply.Then([start](const absl::StatusOr<int64_t>&) {
           return absl::Now() - start - kTimeout;
         })});
  }
  const int64_t id = ++last_id_;
  const absl::Time start = absl::Now();
  const absl::Status status =
      driver().Sync("a", {.timeout = kTimeout}, kApply, id).status();
  overshoots.Add(absl::Now() - start - kTimeout);
  ExpectLate(id, status);
  for (const UnderWay& other : others) {
    overshoots.Add(other.overshoot.Wait().value());
    ExpectLate(other.id, other.reply.Wait().status());
  }
}

void StoppedWorkerTest::ExpectLate(int64_t id, const absl::Status& status) {
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kDeadlineExceeded));
  const bool sent = !absl::StrContains(status.message(), "before it was sent");
  EXPECT_TRUE(IsAt(status, "a", /*maybe_applied=*/sent)) << status;
  if (!sent) unsent_.insert(id);
}

void StoppedWorkerTest::ExpectFencedAfterStop(absl::Duration longer) {
  WorkerProcess& a = Start("a", 1);
  ASSERT_TRUE(a.AwaitReady());
  ASSERT_TRUE(Start("b", 2).AwaitReady());
  const absl::StatusOr<rpc::WorkerInfo> info = driver().FindWorker("a");
  ASSERT_THAT(info, IsOk());
  ASSERT_THAT(driver().Sync("a", kPush, "b"), IsOk());
  async::Future<void> held =
      driver().Async("a", {.timeout = rpc::kNoTimeout}, kHold, 1);
  AwaitBegun("a", 1);

  a.Signal(SIGSTOP);
  const absl::Time stopped = absl::Now();
  EXPECT_THAT(held.Wait(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_LT(absl::Now() - stopped, kDetection + kSlack);
  ASSERT_TRUE(AwaitEvent(rpc::MemberEvent::Kind::kLost, "a", kSlack));
  AwaitLostAt("b", a);
  Last(longer);
  const absl::StatusOr<std::vector<int64_t>> before =
      driver().Sync("b", kLedger);
  ASSERT_THAT(before, IsOk());
  ASSERT_FALSE(before->empty());

  a.Signal(SIGCONT);
  const absl::Time woken = absl::Now();
  // From the start it rejects all callers, also those that do not know of its
  // loss.
  rpc::RawClient caller(rpc::RawClient::GrpcOptions{});
  uint64_t incarnation = 0;
  ASSERT_TRUE(absl::SimpleHexAtoi(a.incarnation(), &incarnation));
  absl::Status refused;
  do {
    refused =
        caller
            .Call(a.address(),
                  {.job = "faults",
                   .source = "raw",
                   .source_rank = rpc::WorkerId(),
                   .destination = "a",
                   .destination_incarnation = rpc::Incarnation{incarnation},
                   .autograd = std::nullopt},
                  rpc::RawClient::kCallPath,
                  rpc::RawClient::FunctionCall(kApply, 7))
            .status();
    ASSERT_FALSE(refused.ok());
    ASSERT_LT(absl::Now() - woken, absl::Seconds(10));
  } while (!absl::IsFailedPrecondition(refused));

  // Its pushes end, rejected by "b" or by "a" itself.
  const std::string pushed = a.ReadLine().value_or("nothing");
  EXPECT_TRUE(absl::StartsWith(pushed, "pushed ")) << pushed;
  EXPECT_TRUE(absl::StrContains(pushed, "FAILED_PRECONDITION")) << pushed;
  EXPECT_TRUE(absl::StrContains(pushed, info->name)) << pushed;
  EXPECT_LT(absl::Now() - woken, absl::Seconds(10));
  // Its pushes had no effect after it was lost.
  EXPECT_THAT(driver().Sync("b", kLedger), IsOkAndHolds(*before));

  // A new worker takes over the name.
  ASSERT_TRUE(Start("a", 1).AwaitReady());
  EXPECT_THAT(driver().Sync("a", kApply, 1), IsOkAndHolds(1));
}

TEST_P(StoppedWorkerTest, F4StopBeyondTheLeaseFences) {
  ExpectFencedAfterStop(absl::ZeroDuration());
}

TEST_P(StoppedWorkerTest, F4StopOfTenSecondsFences) {
  if (!async::IsNightly()) GTEST_SKIP() << kNightlyOnly;
  ExpectFencedAfterStop(absl::Seconds(10));
}

TEST_P(StoppedWorkerTest, F4StopOfAMinuteFences) {
  if (!async::IsNightly()) GTEST_SKIP() << kNightlyOnly;
  ExpectFencedAfterStop(absl::Seconds(60));
}

INSTANTIATE_TEST_SUITE_P(Ways, StoppedWorkerTest, testing::Bool(), WayName);

}  // namespace
}  // namespace hawser::tests
