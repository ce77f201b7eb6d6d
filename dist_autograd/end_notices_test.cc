#include "dist_autograd/end_notices.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "async/testing/simulated_clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/dist_autograd.pb.h"
#include "rpc/identity/worker_info.h"

namespace hawser::dist_autograd {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

using Message = std::pair<std::string, std::vector<uint64_t>>;

class EndNoticesTest : public testing::Test {
 protected:
  void Add(uint64_t context, const rpc::WorkerInfo& to) {
    notices_->Add(ContextId{context}, to);
  }
  std::vector<Message> TakeSent() { return std::exchange(sent_, {}); }

  const rpc::WorkerInfo a_{"a", rpc::WorkerId(1), rpc::Incarnation{7}, ""};
  const rpc::WorkerInfo b_{"b", rpc::WorkerId(2), rpc::Incarnation{8}, ""};
  async::SimulatedClock clock_;
  std::vector<Message> sent_;
  const std::shared_ptr<EndNotices> notices_ = std::make_shared<EndNotices>(
      &clock_, [this](const rpc::WorkerInfo& to,
                      const v1::ReleaseContextRequest& request) {
        sent_.emplace_back(to.name,
                           std::vector<uint64_t>(request.contexts().begin(),
                                                 request.contexts().end()));
      });
};

TEST_F(EndNoticesTest, FirstIsSentAtOnceAndTheNextTogether) {
  Add(1, a_);
  EXPECT_THAT(TakeSent(), ElementsAre(Pair("a", ElementsAre(1))));
  Add(2, a_);
  Add(3, a_);
  EXPECT_THAT(TakeSent(), IsEmpty());
  clock_.AdvanceBy(EndNotices::kInterval);
  EXPECT_THAT(TakeSent(), ElementsAre(Pair("a", ElementsAre(2, 3))));
  // Another interval begins.
  Add(4, a_);
  EXPECT_THAT(TakeSent(), IsEmpty());
  clock_.AdvanceBy(EndNotices::kInterval);
  EXPECT_THAT(TakeSent(), ElementsAre(Pair("a", ElementsAre(4))));
}

TEST_F(EndNoticesTest, AfterAnIntervalWithoutNoticesTheNextIsSentAtOnce) {
  Add(1, a_);
  clock_.AdvanceBy(EndNotices::kInterval);
  EXPECT_EQ(clock_.num_timers(), 0u);
  EXPECT_THAT(TakeSent(), SizeIs(1));
  Add(2, a_);
  EXPECT_THAT(TakeSent(), ElementsAre(Pair("a", ElementsAre(2))));
}

TEST_F(EndNoticesTest, WorkersHaveTheirOwnIntervals) {
  Add(1, a_);
  Add(1, b_);
  EXPECT_THAT(TakeSent(), ElementsAre(Pair("a", ElementsAre(1)),
                                      Pair("b", ElementsAre(1))));
  rpc::WorkerInfo successor = a_;
  successor.incarnation = rpc::Incarnation{9};
  Add(2, successor);
  EXPECT_THAT(TakeSent(), ElementsAre(Pair("a", ElementsAre(2))));
}

TEST_F(EndNoticesTest, ManyAreSentBeforeTheInterval) {
  Add(0, a_);
  sent_.clear();
  for (int i = 1; i < EndNotices::kMaxHeld; ++i) Add(i, a_);
  EXPECT_THAT(TakeSent(), IsEmpty());
  Add(EndNotices::kMaxHeld, a_);
  EXPECT_THAT(TakeSent(), ElementsAre(Pair("a", SizeIs(EndNotices::kMaxHeld))));
  clock_.AdvanceBy(EndNotices::kInterval);
  EXPECT_THAT(TakeSent(), IsEmpty());
}

}  // namespace
}  // namespace hawser::dist_autograd
