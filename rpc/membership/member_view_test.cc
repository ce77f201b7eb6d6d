#include "rpc/membership/member_view.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/identity/worker_info.h"
#include "rpc/membership/member_event.h"
#include "rpc/membership/membership_log.h"

namespace hawser::rpc {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

WorkerInfo Worker(int rank, uint64_t incarnation) {
  return {.name = absl::StrCat("w", rank),
          .id = WorkerId(rank),
          .incarnation = Incarnation{incarnation},
          .address = "inproc"};
}

class MemberViewTest : public testing::Test {
 protected:
  // The events reported since the last call, as "+w1", "-w1" or "!w1 reason".
  std::vector<std::string> Reported() {
    return std::exchange(reported_, std::vector<std::string>());
  }

  const WorkerInfo self_ = Worker(1, 11);

 private:
  std::vector<std::string> reported_;

 protected:
  MemberView view_{self_, [this](const MemberEvent& event) {
                     switch (event.kind) {
                       case MemberEvent::Kind::kJoined:
                         reported_.push_back("+" + event.worker.name);
                         return;
                       case MemberEvent::Kind::kLeft:
                         reported_.push_back("-" + event.worker.name);
                         return;
                       case MemberEvent::Kind::kLost:
                         reported_.push_back(absl::StrCat(
                             "!", event.worker.name, " ", event.reason));
                     }
                   }};
};

TEST_F(MemberViewTest, MembersAreReportedByRankWhenThisWorkerJoins) {
  view_.Apply(JoinedEvent(Worker(3, 13)));
  view_.Apply(JoinedEvent(Worker(0, 10)));
  EXPECT_THAT(Reported(), IsEmpty());
  EXPECT_FALSE(view_.is_member());
  EXPECT_EQ(view_.Apply(JoinedEvent(self_)), std::nullopt);
  EXPECT_TRUE(view_.is_member());
  EXPECT_THAT(Reported(), ElementsAre("+w0", "+w1", "+w3"));
  EXPECT_EQ(view_.Apply(JoinedEvent(Worker(2, 12))), Incarnation{12});
  EXPECT_THAT(Reported(), ElementsAre("+w2"));
  EXPECT_EQ(view_.members().size(), 4u);
}

TEST_F(MemberViewTest, DeparturesOfThePastAreReported) {
  view_.Apply(JoinedEvent(Worker(0, 9)));
  view_.Apply(LostEvent(Incarnation{9}, Incarnation{10}, "late"));
  EXPECT_THAT(Reported(), ElementsAre("!w0 late"));
  view_.Apply(JoinedEvent(self_));
  EXPECT_THAT(Reported(), ElementsAre("+w1"));
}

TEST_F(MemberViewTest, MembersDepartOnce) {
  view_.Apply(JoinedEvent(self_));
  view_.Apply(JoinedEvent(Worker(2, 12)));
  Reported();
  view_.Apply(LeftEvent(Incarnation{12}));
  view_.Apply(LostEvent(Incarnation{12}, self_.incarnation, "silent"));
  EXPECT_THAT(Reported(), ElementsAre("-w2"));
  EXPECT_TRUE(view_.departed(Incarnation{12}));
  // An incarnation joins once.
  EXPECT_EQ(view_.Apply(JoinedEvent(Worker(2, 12))), std::nullopt);
  EXPECT_THAT(Reported(), IsEmpty());
  EXPECT_EQ(view_.members().size(), 1u);
}

TEST_F(MemberViewTest, ReportsByDepartedWorkersAreIgnored) {
  view_.Apply(JoinedEvent(self_));
  view_.Apply(JoinedEvent(Worker(2, 12)));
  view_.Apply(JoinedEvent(Worker(3, 13)));
  Reported();
  view_.Apply(LostEvent(Incarnation{12}, Incarnation{13}, "first"));
  view_.Apply(LostEvent(Incarnation{13}, Incarnation{12}, "second"));
  EXPECT_THAT(Reported(), ElementsAre("!w2 first"));
}

TEST_F(MemberViewTest, OwnLossIsReportedEvenBeforeJoining) {
  view_.Apply(LostEvent(self_.incarnation, Incarnation{12}, "slow"));
  EXPECT_THAT(Reported(), ElementsAre("!w1 slow"));
  view_.Apply(JoinedEvent(self_));
  EXPECT_FALSE(view_.is_member());
}

TEST_F(MemberViewTest, MalformedEventsChangeNothing) {
  view_.Apply(v1::MembershipEvent());
  WorkerInfo nameless = Worker(2, 12);
  nameless.name = "no spaces";
  view_.Apply(JoinedEvent(nameless));
  EXPECT_THAT(view_.members(), IsEmpty());
  EXPECT_THAT(Reported(), IsEmpty());
}

}  // namespace
}  // namespace hawser::rpc
