// Tests of F20: workers that receive SIGTERM while they serve calls.

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "async/testing/nightly.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/faults/faults_test_fixture.h"
#include "tests/faults/worker_functions.h"
#include "tests/faults/worker_process.h"

namespace hawser::tests {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;

const int kDrains = async::NightlyOr(1000, 3);

class DrainTest : public BothWaysFaultsTest {};

// Reads the ids that a worker reports when it exits.
std::multiset<int64_t> ReadLedger(WorkerProcess& worker) {
  const std::string line = worker.ReadLine().value_or("nothing");
  EXPECT_TRUE(absl::StartsWith(line, "applied")) << line;
  std::multiset<int64_t> ids;
  for (absl::string_view word : absl::StrSplit(line, ' ', absl::SkipEmpty())) {
    int64_t id = 0;
    if (absl::SimpleAtoi(word, &id)) ids.insert(id);
  }
  return ids;
}

// Stops one of two workers in turn while calls to both run. Calls that it
// rejects are sent to the other one: no call fails, and each runs once.
TEST_P(DrainTest, F20NoCallFailsAndNoneRunsTwice) {
  constexpr int kInFlight = 16;
  struct UnderWay {
    int64_t id;
    async::Future<int64_t> reply;
  };
  WorkerProcess* workers[] = {&Start("w0", 1), &Start("w1", 2)};
  for (WorkerProcess* worker : workers) ASSERT_TRUE(worker->AwaitReady());
  std::multiset<int64_t> applied;
  std::deque<UnderWay> under_way;
  int64_t last_id = 0;
  const auto begin = [&](int64_t id, int preferred) {
    under_way.push_back({id, driver().Async(absl::StrCat("w", preferred),
                                            kApplySlowly, id, id % 5)});
  };
  // Waits for the oldest call. If it failed, sends it to the other worker and
  // returns false.
  const auto finish = [&](int draining) {
    UnderWay oldest = std::move(under_way.front());
    under_way.pop_front();
    const absl::Status status = oldest.reply.Wait().status();
    if (status.ok()) return true;
    const std::string name = absl::StrCat("w", draining);
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable));
    // Otherwise it could run twice.
    EXPECT_TRUE(IsAt(status, name, /*maybe_applied=*/false)) << status;
    begin(oldest.id, 1 - draining);
    return false;
  };
  for (int drain = 0; drain < kDrains; ++drain) {
    const int draining = drain % 2;
    for (int i = 0; i < kInFlight; ++i) begin(++last_id, i % 2);
    for (int i = 0; i < 100; ++i) {
      finish(draining);
      begin(++last_id, i % 2);
    }
    const absl::Time told = absl::Now();
    workers[draining]->Signal(SIGTERM);
    // Keeps calling the worker until an event reports its leave, and for some
    // time after that.
    while (!AwaitEvent(rpc::MemberEvent::Kind::kLeft,
                       absl::StrCat("w", draining), absl::ZeroDuration())) {
      if (finish(draining)) begin(++last_id, draining);
      ASSERT_LT(absl::Now() - told, absl::Seconds(30))
          << "drain " << drain << " of w" << draining << ", after\n"
          << OtherEvents();
    }
    for (int i = 0; i < 200; ++i) {
      if (finish(draining)) begin(++last_id, draining);
    }
    EXPECT_EQ(workers[draining]->Wait(), 0);
    EXPECT_LT(absl::Now() - told, absl::Seconds(30));
    applied.merge(ReadLedger(*workers[draining]));
    while (!under_way.empty()) finish(draining);
    workers[draining] = &Start(absl::StrCat("w", draining), 1 + draining);
    ASSERT_TRUE(workers[draining]->AwaitReady());
    // The name reaches the new worker.
    while (!driver().Sync(absl::StrCat("w", draining), kLedger).ok()) {
      ASSERT_LT(absl::Now() - told, absl::Minutes(2)) << OtherEvents();
    }
  }
  for (WorkerProcess* worker : workers) {
    worker->Signal(SIGTERM);
    EXPECT_EQ(worker->Wait(), 0);
    applied.merge(ReadLedger(*worker));
  }
  for (int64_t id = 1; id <= last_id; ++id) {
    EXPECT_EQ(applied.count(id), 1u) << "call " << id;
  }
}

TEST_P(DrainTest, F20RunningCallsFinish) {
  WorkerProcess& a = Start("a", 1);
  ASSERT_TRUE(a.AwaitReady());
  async::Future<void> slow = driver().Async("a", kApplyAndWait, 1);
  async::Future<void> held = driver().Async("a", kHold, 2);
  AwaitBegun("a", 2);
  a.Signal(SIGTERM);
  ASSERT_TRUE(AwaitEvent(rpc::MemberEvent::Kind::kLeft, "a",
                         absl::Seconds(1) + kSlack));
  EXPECT_FALSE(slow.ready());
  // The worker rejects new calls.
  const absl::Status status = driver().Sync("a", kApply, 2).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_TRUE(IsAt(status, "a", /*maybe_applied=*/false)) << status;
  // Running calls can be cancelled, or finish.
  EXPECT_TRUE(held.Cancel());
  EXPECT_THAT(slow.Wait(), IsOk());
  EXPECT_EQ(a.Wait(), 0);
  EXPECT_EQ(a.ReadLine(), "applied 1");
}

TEST_P(DrainTest, F20SecondSignalStopsAtOnce) {
  WorkerProcess& a = Start("a", 1);
  ASSERT_TRUE(a.AwaitReady());
  async::Future<void> held = driver().Async("a", kHold, 1);
  AwaitBegun("a", 1);
  a.Signal(SIGTERM);
  ASSERT_TRUE(AwaitEvent(rpc::MemberEvent::Kind::kLeft, "a",
                         absl::Seconds(1) + kSlack));
  EXPECT_FALSE(held.ready());
  const absl::Time told = absl::Now();
  a.Signal(SIGTERM);
  EXPECT_EQ(a.Wait(), 1);
  EXPECT_LT(absl::Now() - told, absl::Seconds(1) + kSlack);
  EXPECT_THAT(held.Wait(), StatusIs(absl::StatusCode::kUnavailable));
}

INSTANTIATE_TEST_SUITE_P(Ways, DrainTest, testing::Bool(), WayName);

}  // namespace
}  // namespace hawser::tests
