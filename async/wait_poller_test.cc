#include "async/wait_poller.h"

#include <chrono>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/future.h"
#include "async/join.h"
#include "async/testing/manual_executor.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::async {
namespace {

using ::testing::ElementsAre;
using ::testing::IsNull;

// Runs `action` when a thread polls.
class FakePoller final : public WaitPoller {
 public:
  explicit FakePoller(std::function<void()> action)
      : action_(std::move(action)) {}

  void PollUntil(absl::FunctionRef<bool()> done) override {
    ++num_polls;
    action_();
    done_after = done();
  }

  int num_polls = 0;
  bool done_after = false;

 private:
  const std::function<void()> action_;
};

TEST(WaitPollerTest, WaitingThreadPollsForTheResult) {
  Promise<int> promise;
  Future<int> future = promise.future();
  const auto poller =
      std::make_shared<FakePoller>([&promise] { promise.Set(3); });
  future.SetWaitPoller(poller);
  EXPECT_THAT(future.Wait(), IsOkAndHolds(3));
  EXPECT_EQ(poller->num_polls, 1);
  EXPECT_TRUE(poller->done_after);
  // The result is there now.
  EXPECT_THAT(future.Wait(), IsOkAndHolds(3));
  EXPECT_EQ(poller->num_polls, 1);
}

TEST(WaitPollerTest, PollingEndsAtTheDeadlineOfTheWait) {
  Promise<void> promise;
  Future<void> future = promise.future();
  const auto poller = std::make_shared<FakePoller>([] {});
  future.SetWaitPoller(poller);
  EXPECT_THAT(future.WaitUntil(std::chrono::steady_clock::now()),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_TRUE(poller->done_after);
  EXPECT_THAT(future.WaitFor(absl::Milliseconds(200)),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_FALSE(poller->done_after);
  EXPECT_EQ(poller->num_polls, 2);
}

TEST(WaitPollerTest, DerivedFuturesPollForTheOperationTheyDependOn) {
  ManualExecutor executor;
  Promise<int> promise;
  Future<int> future = promise.future();
  const auto poller = std::make_shared<FakePoller>([&] {
    promise.Set(3);
    executor.RunAll();
  });
  future.SetWaitPoller(poller);
  const auto add = [](absl::StatusOr<int> value) { return *value + 1; };
  Future<int> sum = future.Then(add).Then(&executor, add);
  EXPECT_EQ(sum.wait_poller(), poller);
  EXPECT_THAT(std::move(sum).Wait(), IsOkAndHolds(5));
  EXPECT_EQ(poller->num_polls, 1);
}

TEST(WaitPollerTest, JoinPollsForAllThatArePendingInTheirOrder) {
  std::vector<Promise<int>> promises(4);
  std::vector<Future<int>> futures;
  std::vector<int> polled;
  for (int i = 0; i < 4; ++i) {
    futures.push_back(promises[i].future());
    if (i == 2) continue;
    futures.back().SetWaitPoller(
        std::make_shared<FakePoller>([&promises, &polled, i] {
          polled.push_back(i);
          promises[i].Set(i);
          // Without a poller.
          if (i == 1) promises[2].Set(2);
        }));
  }
  promises[0].Set(0);
  EXPECT_THAT(JoinAll(futures).Wait(), IsOkAndHolds(ElementsAre(0, 1, 2, 3)));
  EXPECT_THAT(polled, ElementsAre(1, 3));
}

TEST(WaitPollerTest, PollerOfAllStopsWhenTheResultIsThere) {
  int num_polls = 0;
  const auto counting =
      std::make_shared<FakePoller>([&num_polls] { ++num_polls; });
  EXPECT_THAT(PollerOfAll({}), IsNull());
  EXPECT_THAT(PollerOfAll({nullptr, nullptr}), IsNull());
  EXPECT_EQ(PollerOfAll({nullptr, counting}), counting);
  const std::shared_ptr<WaitPoller> all =
      PollerOfAll({counting, nullptr, counting, counting});
  all->PollUntil([&num_polls] { return num_polls == 2; });
  EXPECT_EQ(num_polls, 2);
}

}  // namespace
}  // namespace hawser::async
