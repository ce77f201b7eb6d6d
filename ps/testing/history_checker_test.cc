#include "ps/testing/history_checker.h"

#include <cstdint>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps/storage/consistency.h"

namespace hawser::ps {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kKey = 7;

// Two workers and a row. Each test records a history that is right up to its
// last operation.
class HistoryCheckerTest : public testing::Test {
 protected:
  static HistoryChecker Begin(Consistency consistency) {
    HistoryChecker checker(consistency);
    checker.Join(0, 0);
    checker.Join(1, 0);
    return checker;
  }

  // The row has these pushes.
  static HistoryChecker::Rows Row(const HistoryChecker::Pushes& pushes) {
    return {{kKey, pushes}};
  }
};

TEST_F(HistoryCheckerTest, AcceptsAHistoryOfEachMode) {
  HistoryChecker bounded = Begin(Consistency::BoundedStaleness(1));
  const int64_t push = bounded.BeginPush(0, {kKey});
  bounded.Advance(0);
  bounded.Advance(1);
  int64_t pull = bounded.BeginPull(1);
  bounded.EndPull(pull, Row({}));
  bounded.EndPush(push, true);
  pull = bounded.BeginPull(1);
  bounded.EndPull(pull, Row({{push, 1}}));
  bounded.CheckEnd(Row({{push, 1}}));
  EXPECT_EQ(bounded.failure(), "");

  HistoryChecker synchronous = Begin(Consistency::Synchronous());
  const int64_t first = synchronous.BeginPush(0, {kKey});
  pull = synchronous.BeginPull(0);
  synchronous.EndPull(pull, Row({}));
  synchronous.Advance(0);
  synchronous.Advance(1);
  pull = synchronous.BeginPull(1);
  synchronous.EndPull(pull, Row({{first, 1}}));
  EXPECT_EQ(synchronous.failure(), "");
}

TEST_F(HistoryCheckerTest, FindsAPushThatWasAppliedTwice) {
  HistoryChecker checker = Begin(Consistency::BoundedStaleness(0));
  const int64_t push = checker.BeginPush(0, {kKey});
  const int64_t pull = checker.BeginPull(1);
  checker.EndPull(pull, Row({{push, 2}}));
  EXPECT_THAT(checker.failure(), HasSubstr("has push 0 2 times"));
}

TEST_F(HistoryCheckerTest, FindsAPushThatWasNotSent) {
  HistoryChecker checker = Begin(Consistency::BoundedStaleness(0));
  const int64_t push = checker.BeginPush(0, {kKey + 1});
  const int64_t pull = checker.BeginPull(1);
  checker.EndPull(pull, Row({{push, 1}}));
  EXPECT_THAT(checker.failure(), HasSubstr("which was not sent"));
}

TEST_F(HistoryCheckerTest, FindsAnAcknowledgedPushThatIsMissing) {
  HistoryChecker checker = Begin(Consistency::BoundedStaleness(9));
  const int64_t push = checker.BeginPush(0, {kKey});
  const int64_t early = checker.BeginPull(1);
  checker.EndPush(push, true);
  checker.EndPull(early, Row({}));
  EXPECT_EQ(checker.failure(), "");
  const int64_t pull = checker.BeginPull(1);
  checker.EndPull(pull, Row({}));
  EXPECT_THAT(checker.failure(), HasSubstr("acknowledged before"));
}

TEST_F(HistoryCheckerTest, FindsAReadThatGoesBack) {
  HistoryChecker checker = Begin(Consistency::BoundedStaleness(9));
  const int64_t push = checker.BeginPush(0, {kKey});
  checker.EndPull(checker.BeginPull(1), Row({{push, 1}}));
  checker.EndPull(checker.BeginPull(1), Row({}));
  EXPECT_THAT(checker.failure(), HasSubstr("pull 1 of worker 1"));
  EXPECT_THAT(checker.failure(), HasSubstr("an earlier pull saw it"));
}

TEST_F(HistoryCheckerTest, FindsAnOwnWriteThatIsMissing) {
  HistoryChecker checker = Begin(Consistency::BoundedStaleness(9));
  checker.BeginPush(0, {kKey});
  checker.EndPull(checker.BeginPull(0), Row({}));
  EXPECT_EQ(checker.failure(), "");
  checker.Advance(0);
  checker.EndPull(checker.BeginPull(0), Row({}));
  EXPECT_THAT(checker.failure(), HasSubstr("of the same worker"));
}

TEST_F(HistoryCheckerTest, FindsAPullThatMissesWhatItsBoundDemands) {
  HistoryChecker checker = Begin(Consistency::BoundedStaleness(1));
  checker.BeginPush(0, {kKey});
  for (int worker : {0, 0, 1, 1}) checker.Advance(worker);
  checker.EndPull(checker.BeginPull(1), Row({}));
  EXPECT_THAT(checker.failure(),
              HasSubstr("misses push 0 of worker 0 at clock 0: the staleness "
                        "is at most 1"));
}

TEST_F(HistoryCheckerTest, FindsAPullThatDidNotWait) {
  HistoryChecker checker = Begin(Consistency::BoundedStaleness(1));
  for (int i = 0; i < 2; ++i) checker.Advance(0);
  const int64_t pull = checker.BeginPull(0);
  checker.EndPull(pull, Row({}));
  EXPECT_THAT(checker.failure(),
              HasSubstr("ended while worker 1 was at clock 0"));
}

TEST_F(HistoryCheckerTest, FindsASynchronousPullThatSeesItsOwnClock) {
  HistoryChecker checker = Begin(Consistency::Synchronous());
  const int64_t push = checker.BeginPush(0, {kKey});
  checker.EndPull(checker.BeginPull(1), Row({{push, 1}}));
  EXPECT_THAT(checker.failure(), HasSubstr("which is not complete"));
}

TEST_F(HistoryCheckerTest, FindsASynchronousPullThatMissesACompleteClock) {
  HistoryChecker checker = Begin(Consistency::Synchronous());
  checker.BeginPush(0, {kKey});
  checker.Advance(0);
  checker.Leave(0);
  checker.Advance(1);
  checker.EndPull(checker.BeginPull(1), Row({}));
  EXPECT_THAT(checker.failure(), HasSubstr("the staleness is at most 0"));
}

TEST_F(HistoryCheckerTest, FindsAPushThatIsMissingInTheEnd) {
  HistoryChecker checker = Begin(Consistency::Asynchronous());
  checker.EndPush(checker.BeginPush(0, {kKey}), true);
  checker.CheckEnd(Row({}));
  EXPECT_THAT(checker.failure(), HasSubstr("the end: row 7 misses push 0"));
}

TEST_F(HistoryCheckerTest, PushesOfLostWorkersMayBeMissing) {
  HistoryChecker checker = Begin(Consistency::BoundedStaleness(0));
  checker.BeginPush(0, {kKey});
  checker.Lose(0);
  checker.Advance(1);
  checker.EndPull(checker.BeginPull(1), Row({}));
  checker.CheckEnd(Row({}));
  EXPECT_EQ(checker.failure(), "");
}

}  // namespace
}  // namespace hawser::ps
