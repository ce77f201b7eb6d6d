#include "store/barrier.h"

#include <future>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
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
using ::testing::IsEmpty;
using ::testing::Not;

class BarrierTest : public testing::Test {
 protected:
  HashStore store_;
  Barrier barrier_{&store_, "job/started", absl::Seconds(10)};
  const std::vector<Barrier::Participant> both_ = {{"0/a", "rank 0"},
                                                   {"1/b", "rank 1"}};
};

TEST_F(BarrierTest, OpensWhenAllHaveArrived) {
  ASSERT_THAT(barrier_.Arrive(both_[0], "yes"), IsOk());
  EXPECT_THAT(barrier_.Missing(both_), IsOkAndHolds(ElementsAre(1)));
  std::future<absl::Status> waiting = std::async(std::launch::async, [&] {
    return barrier_.Await(both_, absl::Seconds(30));
  });
  ASSERT_THAT(barrier_.Arrive(both_[1], "no"), IsOk());
  EXPECT_THAT(waiting.get(), IsOk());
  EXPECT_THAT(barrier_.Missing(both_), IsOkAndHolds(IsEmpty()));
  EXPECT_THAT(barrier_.Payloads(both_), IsOkAndHolds(ElementsAre("yes", "no")));
}

TEST_F(BarrierTest, ErrorNamesTheMissingParticipants) {
  ASSERT_THAT(barrier_.Arrive(both_[0], ""), IsOk());
  EXPECT_THAT(barrier_.Await(both_, absl::ZeroDuration()),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       AllOf(HasSubstr("job/started"), HasSubstr("rank 1"),
                             Not(HasSubstr("rank 0")))));
}

TEST_F(BarrierTest, ArrivingAgainReplacesThePayload) {
  ASSERT_THAT(barrier_.Arrive(both_[0], "first"), IsOk());
  ASSERT_THAT(barrier_.Arrive(both_[0], "second"), IsOk());
  ASSERT_THAT(barrier_.Arrive(both_[1], ""), IsOk());
  EXPECT_THAT(barrier_.Payloads(both_),
              IsOkAndHolds(ElementsAre("second", "")));
}

TEST_F(BarrierTest, PrefixesAreSeparateBarriers) {
  Barrier other(&store_, "job/leaving", absl::Seconds(10));
  ASSERT_THAT(barrier_.Arrive(both_[0], ""), IsOk());
  ASSERT_THAT(barrier_.Arrive(both_[1], ""), IsOk());
  EXPECT_THAT(other.Missing(both_), IsOkAndHolds(ElementsAre(0, 1)));
}

TEST_F(BarrierTest, PayloadsNeedAllParticipants) {
  Barrier impatient(&store_, "job/started", absl::ZeroDuration());
  ASSERT_THAT(barrier_.Arrive(both_[0], ""), IsOk());
  EXPECT_THAT(impatient.Payloads(both_),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
}

}  // namespace
}  // namespace hawser::store
