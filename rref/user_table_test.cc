#include "rref/user_table.h"

#include <utility>
#include <vector>

#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::rref {
namespace {

using async::IsOk;
using async::StatusIs;
using Kind = UserTable::Message::Kind;

constexpr rpc::WorkerRun kSelf{rpc::WorkerId(1), rpc::Incarnation{101}};
constexpr rpc::WorkerRun kOwner{rpc::WorkerId(0), rpc::Incarnation{100}};
constexpr rpc::WorkerRun kOther{rpc::WorkerId(2), rpc::Incarnation{102}};

const RRefId kRef{{kSelf, 1}};
const ForkId kFork{{kSelf, 2}};
const ForkId kChild{{kSelf, 3}};
const ForkId kReceived{{kOther, 7}};

class UserTableTest : public testing::Test {
 protected:
  // Completes the promises of `actions` and returns the kinds of its messages.
  std::vector<Kind> Run(UserTable::Actions actions) {
    for (auto& [promise, status] : actions.completions) promise.Set(status);
    std::vector<Kind> kinds;
    for (const UserTable::Message& m : actions.messages) {
      kinds.push_back(m.kind);
      receivers_.push_back(m.to);
    }
    return kinds;
  }

  UserTable table_{kSelf, 16};
  std::vector<rpc::WorkerRun> receivers_;
};

TEST_F(UserTableTest, CopyEndsOnceConfirmedAndReleased) {
  async::Future<void> confirmed = table_.StartCreation(kRef, kFork, kOwner);
  EXPECT_THAT(Run(table_.Release(kFork)), testing::IsEmpty());
  EXPECT_FALSE(confirmed.ready());
  EXPECT_THAT(Run(table_.FinishCreation(kFork, absl::OkStatus())),
              testing::ElementsAre(Kind::kUserDelete));
  EXPECT_THAT(confirmed.result(), IsOk());
  EXPECT_EQ(table_.counts().users, 0u);
}

TEST_F(UserTableTest, PendingChildKeepsItsParent) {
  (void)table_.StartCreation(kRef, kFork, kOwner);
  Run(table_.FinishCreation(kFork, absl::OkStatus()));
  EXPECT_THAT(table_.AddChild(kFork, kChild, kOther), IsOk());
  EXPECT_THAT(Run(table_.Release(kFork)), testing::IsEmpty());
  EXPECT_THAT(Run(table_.AcceptChild(kChild, kOther)),
              testing::ElementsAre(Kind::kUserDelete));
  // A repeated message.
  EXPECT_THAT(Run(table_.AcceptChild(kChild, kOther)), testing::IsEmpty());
}

TEST_F(UserTableTest, ChildAcceptBeforeReleaseKeepsTheCopy) {
  (void)table_.StartCreation(kRef, kFork, kOwner);
  Run(table_.FinishCreation(kFork, absl::OkStatus()));
  EXPECT_THAT(table_.AddChild(kFork, kChild, kOther), IsOk());
  EXPECT_THAT(Run(table_.AcceptChild(kChild, kOther)), testing::IsEmpty());
  EXPECT_THAT(Run(table_.Release(kFork)),
              testing::ElementsAre(Kind::kUserDelete));
}

TEST_F(UserTableTest, OnlyTheReceiverAcceptsAChild) {
  (void)table_.StartCreation(kRef, kFork, kOwner);
  Run(table_.FinishCreation(kFork, absl::OkStatus()));
  ASSERT_THAT(table_.AddChild(kFork, kChild, kOther), IsOk());
  EXPECT_THAT(Run(table_.Release(kFork)), testing::IsEmpty());
  EXPECT_THAT(Run(table_.AcceptChild(kChild, kOwner)), testing::IsEmpty());
  EXPECT_EQ(table_.counts().pending_children, 1u);
}

// Its id could be that of a creation to come.
TEST_F(UserTableTest, ForkOfThisWorkerThatItDidNotSendIsRefused) {
  for (const rpc::WorkerRun& owner : {kOwner, kOther}) {
    EXPECT_THAT(table_.Receive({{kOther, 1}}, kFork, owner, kSelf),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         testing::HasSubstr("did not send")));
  }
  async::Future<void> confirmed = table_.StartCreation(kRef, kFork, kOwner);
  // Nor do others get a handle of the copy of a creation.
  EXPECT_THAT(table_.Receive(kRef, kFork, kOwner, kSelf),
              StatusIs(absl::StatusCode::kInvalidArgument));
  Run(table_.FinishCreation(kFork, absl::OkStatus()));
  EXPECT_THAT(confirmed.result(), IsOk());
  EXPECT_THAT(Run(table_.Release(kFork)),
              testing::ElementsAre(Kind::kUserDelete));
}

TEST_F(UserTableTest, ForkThatThisWorkerSentItselfIsReceived) {
  (void)table_.StartCreation(kRef, kFork, kOwner);
  Run(table_.FinishCreation(kFork, absl::OkStatus()));
  ASSERT_THAT(table_.AddChild(kFork, kChild, kSelf), IsOk());
  ASSERT_THAT(table_.AddChild(kFork, {{kSelf, 4}}, kOther), IsOk());
  // Of another reference, of another owner, and given to another worker.
  EXPECT_THAT(table_.Receive({{kSelf, 9}}, kChild, kOwner, kSelf),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(table_.Receive(kRef, kChild, kOther, kSelf),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(table_.Receive(kRef, {{kSelf, 4}}, kOwner, kSelf),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(table_.Receive(kRef, kChild, kOwner, kSelf), IsOk());
}

TEST_F(UserTableTest, ForkThatIsHereOfAnotherReferenceIsRefused) {
  ASSERT_THAT(table_.Receive(kRef, kReceived, kOwner, kOther), IsOk());
  EXPECT_THAT(table_.Receive({{kSelf, 9}}, kReceived, kOwner, kOther),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::HasSubstr(kReceived.ToString())));
  EXPECT_THAT(table_.Receive(kRef, kReceived, kOther, kOther),
              StatusIs(absl::StatusCode::kInvalidArgument));
  // Neither added a handle.
  Run(table_.FinishRequest(kReceived, absl::OkStatus()));
  EXPECT_THAT(Run(table_.Release(kReceived)),
              testing::ElementsAre(Kind::kUserDelete));
}

TEST_F(UserTableTest, FailedCreationIsKeptAndWithdrawn) {
  async::Future<void> confirmed = table_.StartCreation(kRef, kFork, kOwner);
  Run(table_.FinishCreation(kFork, absl::DeadlineExceededError("slow")));
  EXPECT_THAT(confirmed.result(),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_THAT(table_.Check(kFork),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_THAT(table_.AddChild(kFork, kChild, kOther),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_THAT(Run(table_.Release(kFork)),
              testing::ElementsAre(Kind::kWithdrawCreation));
}

TEST_F(UserTableTest, CopyFromTheOwnerIsConfirmedAtOnce) {
  auto received = table_.Receive(kRef, kReceived, kOwner, kOwner);
  ASSERT_THAT(received, IsOk());
  EXPECT_TRUE(received->confirmed.ready());
  EXPECT_FALSE(received->request_owner);
  EXPECT_THAT(Run(table_.Release(kReceived)),
              testing::ElementsAre(Kind::kUserDelete));
}

TEST_F(UserTableTest, CopyFromAUserIsAcceptedOnceTheOwnerKnows) {
  auto received = table_.Receive(kRef, kReceived, kOwner, kOther);
  ASSERT_THAT(received, IsOk());
  EXPECT_FALSE(received->confirmed.ready());
  EXPECT_TRUE(received->request_owner);
  EXPECT_THAT(Run(table_.FinishRequest(kReceived, absl::OkStatus())),
              testing::ElementsAre(Kind::kChildAccept));
  EXPECT_THAT(receivers_, testing::ElementsAre(kOther));
  EXPECT_THAT(received->confirmed.result(), IsOk());
  EXPECT_THAT(Run(table_.FinishRequest(kReceived, absl::OkStatus())),
              testing::IsEmpty());
}

TEST_F(UserTableTest, RefusedForkReleasesTheParentWithoutAMessageToTheOwner) {
  auto received = table_.Receive(kRef, kReceived, kOwner, kOther);
  ASSERT_THAT(received, IsOk());
  EXPECT_THAT(Run(table_.FinishRequest(kReceived, absl::NotFoundError("gone"))),
              testing::ElementsAre(Kind::kChildAccept));
  EXPECT_THAT(received->confirmed.result(),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(Run(table_.Release(kReceived)), testing::IsEmpty());
  EXPECT_EQ(table_.counts().users, 0u);
}

TEST_F(UserTableTest, SameForkTwiceIsOneCopyWithTwoHandles) {
  ASSERT_THAT(table_.Receive(kRef, kReceived, kOwner, kOwner), IsOk());
  ASSERT_THAT(table_.Receive(kRef, kReceived, kOwner, kOwner), IsOk());
  EXPECT_THAT(Run(table_.Release(kReceived)), testing::IsEmpty());
  EXPECT_THAT(Run(table_.Release(kReceived)),
              testing::ElementsAre(Kind::kUserDelete));
}

TEST_F(UserTableTest, WithdrawnForkIsRefusedWhenItArrives) {
  EXPECT_FALSE(table_.Withdraw(kReceived));
  EXPECT_TRUE(table_.IsWithdrawn(kReceived));
  EXPECT_THAT(table_.Receive(kRef, kReceived, kOwner, kOther),
              StatusIs(absl::StatusCode::kAborted));
}

TEST_F(UserTableTest, ForkThatArrivedIsNotWithdrawn) {
  ASSERT_THAT(table_.Receive(kRef, kReceived, kOwner, kOther), IsOk());
  EXPECT_TRUE(table_.Withdraw(kReceived));
  EXPECT_FALSE(table_.IsWithdrawn(kReceived));
}

TEST_F(UserTableTest, ChildIsStaleAfterAWholeInterval) {
  (void)table_.StartCreation(kRef, kFork, kOwner);
  EXPECT_TRUE(table_.TakeStaleChildren().empty());
  EXPECT_THAT(table_.AddChild(kFork, kChild, kOther), IsOk());
  EXPECT_TRUE(table_.TakeStaleChildren().empty());
  ASSERT_EQ(table_.TakeStaleChildren().size(), 1u);
}

// Only the call that creates knows if the function may have run.
TEST_F(UserTableTest, CreationInFlightToALostOwnerEndsWithItsCall) {
  async::Future<void> creation = table_.StartCreation(kRef, kFork, kOwner);
  EXPECT_THAT(Run(table_.OnWorkerLost(kOwner, absl::UnavailableError("dead"))),
              testing::IsEmpty());
  EXPECT_FALSE(creation.ready());
  EXPECT_THAT(Run(table_.FinishCreation(kFork, absl::AbortedError("refused"))),
              testing::IsEmpty());
  EXPECT_THAT(creation.result(), StatusIs(absl::StatusCode::kAborted));
  EXPECT_THAT(table_.Check(kFork), StatusIs(absl::StatusCode::kAborted));
  // The lost owner is not notified.
  EXPECT_THAT(Run(table_.Release(kFork)), testing::IsEmpty());
  EXPECT_EQ(table_.counts().users, 0u);
}

TEST_F(UserTableTest, CreationThatSucceedsAfterItsOwnerIsLostKeepsTheLoss) {
  async::Future<void> creation = table_.StartCreation(kRef, kFork, kOwner);
  Run(table_.OnWorkerLost(kOwner, absl::UnavailableError("dead")));
  Run(table_.FinishCreation(kFork, absl::OkStatus()));
  EXPECT_THAT(creation.result(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(table_.Check(kFork), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(Run(table_.Release(kFork)), testing::IsEmpty());
}

TEST_F(UserTableTest, LostOwnerIsKeptWithItsCopies) {
  async::Future<void> creation = table_.StartCreation(kRef, kFork, kOwner);
  Run(table_.FinishCreation(kFork, absl::OkStatus()));
  auto received = table_.Receive(kRef, kReceived, kOwner, kOther);
  ASSERT_THAT(received, IsOk());
  // The parent of the received copy is released.
  EXPECT_THAT(Run(table_.OnWorkerLost(kOwner, absl::UnavailableError("dead"))),
              testing::ElementsAre(Kind::kChildAccept));
  EXPECT_THAT(creation.result(), IsOk());
  EXPECT_THAT(received->confirmed.result(),
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(table_.Check(kFork), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(Run(table_.Release(kFork)), testing::IsEmpty());
  EXPECT_THAT(Run(table_.Release(kReceived)), testing::IsEmpty());
  EXPECT_THAT(table_.Receive(kRef, kReceived, kOwner, kOther),
              StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(UserTableTest, UnknownOwnerFailsItsCopiesAndIsForgotten) {
  auto received = table_.Receive(kRef, kReceived, kOwner, kOther);
  ASSERT_THAT(received, IsOk());
  EXPECT_THAT(
      Run(table_.OnWorkerUnknown(kOwner, absl::NotFoundError("nobody"))),
      testing::ElementsAre(Kind::kChildAccept));
  EXPECT_THAT(received->confirmed.result(),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(table_.Check(kReceived), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(Run(table_.Release(kReceived)), testing::IsEmpty());
  EXPECT_EQ(table_.counts().lost_workers, 0u);
  // It may have become a member since.
  EXPECT_THAT(table_.Receive(kRef, kReceived, kOwner, kOther), IsOk());
  Run(table_.OnWorkerLost(kOwner, absl::UnavailableError("dead")));
  EXPECT_EQ(table_.counts().lost_workers, 1u);
}

TEST_F(UserTableTest, ChildGivenToALostWorkerIsDropped) {
  (void)table_.StartCreation(kRef, kFork, kOwner);
  Run(table_.FinishCreation(kFork, absl::OkStatus()));
  EXPECT_THAT(table_.AddChild(kFork, kChild, kOther), IsOk());
  Run(table_.Release(kFork));
  EXPECT_THAT(Run(table_.OnWorkerLost(kOther, absl::UnavailableError("dead"))),
              testing::ElementsAre(Kind::kUserDelete));
}

TEST_F(UserTableTest, CloseEndsEveryCopyAndRefusesUse) {
  async::Future<void> creation = table_.StartCreation(kRef, kFork, kOwner);
  ASSERT_THAT(table_.Receive(kRef, kReceived, kOwner, kOwner), IsOk());
  EXPECT_THAT(Run(table_.Close()),
              testing::UnorderedElementsAre(Kind::kWithdrawCreation,
                                            Kind::kUserDelete));
  EXPECT_THAT(creation.result(),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(table_.Check(kFork),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(table_.AddChild(kFork, kChild, kOther),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(Run(table_.Release(kFork)), testing::IsEmpty());
}

}  // namespace
}  // namespace hawser::rref
