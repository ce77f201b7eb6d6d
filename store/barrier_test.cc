#include "store/barrier.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "async/future.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "store/hash/store.h"

namespace hawser::store {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class BarrierTest : public testing::Test {
 protected:
  HashStore store_;
  Barrier barrier_{&store_, "job/started", absl::Seconds(10)};
  const std::vector<Barrier::Participant> both_ = {{"0/a", "rank 0"},
                                                   {"1/b", "rank 1"}};
};

TEST_F(BarrierTest, CoordinatorCollectsThePayloadsAndLetsTheOthersPass) {
  const async::Future<std::vector<std::string>> arrived =
      barrier_.WhenAllArrived(both_);
  const async::Future<std::string> complete = barrier_.WhenComplete();
  ASSERT_THAT(barrier_.Arrive(both_[1], "no"), IsOk());
  EXPECT_FALSE(arrived.ready());
  ASSERT_THAT(barrier_.Arrive(both_[0], ""), IsOk());
  ASSERT_TRUE(arrived.ready());
  EXPECT_THAT(arrived.result(), IsOkAndHolds(ElementsAre("", "no")));
  EXPECT_FALSE(complete.ready());
  ASSERT_THAT(barrier_.Complete("result"), IsOk());
  ASSERT_TRUE(complete.ready());
  EXPECT_THAT(complete.result(), IsOkAndHolds("result"));
  EXPECT_THAT(barrier_.WhenComplete().result(), IsOkAndHolds("result"));
}

TEST_F(BarrierTest, EmptyResultCompletesToo) {
  const async::Future<std::string> complete = barrier_.WhenComplete();
  ASSERT_THAT(barrier_.Complete(""), IsOk());
  ASSERT_TRUE(complete.ready());
  EXPECT_THAT(complete.result(), IsOkAndHolds(""));
}

TEST_F(BarrierTest, CancelEndsTheWaits) {
  const auto arrived = barrier_.WhenAllArrived(both_);
  const auto complete = barrier_.WhenComplete();
  EXPECT_TRUE(arrived.Cancel());
  EXPECT_TRUE(complete.Cancel());
  ASSERT_THAT(barrier_.Arrive(both_[0], ""), IsOk());
  ASSERT_THAT(barrier_.Arrive(both_[1], ""), IsOk());
  ASSERT_THAT(barrier_.Complete(""), IsOk());
  EXPECT_THAT(arrived.result(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(complete.result(), StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(BarrierTest, ErrorNamesTheMissingParticipants) {
  ASSERT_THAT(barrier_.Arrive(both_[0], ""), IsOk());
  EXPECT_THAT(barrier_.CheckAllArrived(both_),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       AllOf(HasSubstr("job/started"), HasSubstr("rank 1"),
                             Not(HasSubstr("rank 0")))));
  ASSERT_THAT(barrier_.Arrive(both_[1], ""), IsOk());
  EXPECT_THAT(barrier_.CheckAllArrived(both_), IsOk());
}

TEST_F(BarrierTest, PrefixesAreSeparateBarriers) {
  Barrier other(&store_, "job/leaving", absl::Seconds(10));
  const auto arrived = other.WhenAllArrived(both_);
  const auto complete = other.WhenComplete();
  ASSERT_THAT(barrier_.Arrive(both_[0], ""), IsOk());
  ASSERT_THAT(barrier_.Arrive(both_[1], ""), IsOk());
  ASSERT_THAT(barrier_.Complete(""), IsOk());
  EXPECT_FALSE(arrived.ready());
  EXPECT_FALSE(complete.ready());
}

}  // namespace
}  // namespace hawser::store
