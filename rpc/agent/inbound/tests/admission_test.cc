#include "rpc/agent/inbound/admission.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "net/auth/identity.h"
#include "rpc/agent/inbound/inbound_call.h"
#include "rpc/agent/state/agent_state.h"
#include "rpc/errors/error_detail.h"
#include "rpc/identity/trace_context.h"
#include "rpc/identity/worker_info.h"
#include "rpc/peers/call_quota.h"
#include "rpc/peers/peer.h"
#include "rpc/testing/fakes/fake_incoming_call.h"
#include "rpc/testing/fakes/fake_service_host.h"
#include "rpc/testing/fakes/inbound_test_fixture.h"
#include "rpc/transport/payload.h"
#include "rpc/wire/message_interceptor.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class AdmissionTest : public InboundTestFixture {
 protected:
  // Admits `request` to a new call_.
  absl::Status AdmitRequest(
      FakeRequest request, bool begins_work = true,
      FakeIncomingCall::Options options = FakeIncomingCall::Options()) {
    call_ = std::make_unique<InboundCall>(
        state_, Incoming(std::move(request), end_, std::move(options)));
    return admission_.Admit(*call_,
                            {.begins_work = begins_work, .quota = &quota_});
  }

  // Admits a request of peer_ whose certificate is that of `caller`.
  absl::Status AdmitFrom(absl::StatusOr<std::optional<net::Identity>> caller) {
    return AdmitRequest(RequestFromPeer(), /*begins_work=*/true,
                        {.caller = std::move(caller)});
  }

  // A request of a worker that is not a known peer.
  FakeRequest RequestFromUnknown() const {
    FakeRequest request = RequestFromPeer();
    request.header.source = unknown_.name;
    request.header.source_rank = unknown_.id;
    request.header.source_incarnation = unknown_.incarnation;
    return request;
  }
  // Continues call_, whose sender was looked up.
  absl::Status AdmitConfirmed() {
    return admission_.AdmitConfirmed(*call_,
                                     {.begins_work = true, .quota = &quota_});
  }

  const WorkerInfo unknown_ = FakeServiceHost::MakeWorker(2);
  CallQuota quota_{CallLimits{}};
  Admission admission_{state_, &senders_};
  std::shared_ptr<const End> end_;
  std::unique_ptr<InboundCall> call_;
};

// The detail of an error before which the call, or an earlier copy, may have
// run.
std::optional<ErrorDetail> DetailOf(const WorkerInfo& self,
                                    bool maybe_applied) {
  return ErrorDetail{.worker = self.name,
                     .incarnation = self.incarnation,
                     .maybe_applied = maybe_applied};
}

TEST_F(AdmissionTest, CallOfAKnownPeerIsAdmittedWithAllItsFields) {
  FakeRequest request = RequestFromPeer(7);
  request.body = "\x0a\x02hi";
  request.header.autograd =
      AutogradMetadata{.context_id = 3, .context_incarnation = Incarnation{4}};
  request.header.trace = {.traceparent = "00-a", .tracestate = "b"};
  const size_t bytes = Encode(request)->size();
  ASSERT_THAT(AdmitRequest(std::move(request)), IsOk());
  EXPECT_EQ(call_->request_bytes, bytes);
  EXPECT_EQ(call_->call_id, 7u);
  // With the address, which only the directory knows.
  EXPECT_EQ(call_->source, peer_);
  EXPECT_EQ(call_->counters, sender_->counters());
  ASSERT_TRUE(call_->message.has_value());
  EXPECT_EQ(call_->message->body(), "\x0a\x02hi");
  ASSERT_TRUE(call_->autograd.has_value());
  EXPECT_EQ(call_->autograd->context_id, 3u);
  EXPECT_EQ(call_->trace,
            (TraceContext{.traceparent = "00-a", .tracestate = "b"}));
  EXPECT_FALSE(call_->unconfirmed);
  EXPECT_THAT(senders_.heard, ElementsAre(peer_.name));
  EXPECT_EQ(sender_->counters()->totals().served, 1u);
  EXPECT_EQ(sender_->counters()->totals().bytes_received, bytes);
  EXPECT_EQ(end_->kind, Kind::kPending);
}

TEST_F(AdmissionTest, UnknownSenderThatSaysItIsAMemberIsUnconfirmed) {
  ASSERT_THAT(AdmitRequest(RequestFromUnknown()), IsOk());
  EXPECT_TRUE(call_->unconfirmed);
  EXPECT_THAT(senders_.heard, IsEmpty());
  EXPECT_EQ(call_->counters, nullptr);
  EXPECT_EQ(call_->source.name, unknown_.name);
  EXPECT_EQ(call_->source.id, unknown_.id);
  EXPECT_EQ(call_->source.incarnation, unknown_.incarnation);
  EXPECT_EQ(call_->source.address, "");
  // Its calls count at once.
  EXPECT_FALSE(call_->reservation.empty());
}

TEST_F(AdmissionTest, KnownPeersClientsAndThisWorkerNeedNoConfirmation) {
  ASSERT_THAT(AdmitRequest(RequestFromPeer()), IsOk());
  EXPECT_FALSE(call_->unconfirmed);
  FakeRequest client = RequestFromUnknown();
  client.header.source_rank = WorkerId();
  ASSERT_THAT(AdmitRequest(std::move(client)), IsOk());
  EXPECT_FALSE(call_->unconfirmed);
  FakeRequest own = RequestFromPeer();
  own.header.source = self_.name;
  own.header.source_rank = self_.id;
  own.header.source_incarnation = self_.incarnation;
  ASSERT_THAT(AdmitRequest(std::move(own)), IsOk());
  EXPECT_FALSE(call_->unconfirmed);
}

TEST_F(AdmissionTest, ConfirmedSenderIsAdmittedAsAKnownPeer) {
  const FakeRequest request = RequestFromUnknown();
  const size_t bytes = Encode(request)->size();
  ASSERT_THAT(AdmitRequest(request), IsOk());
  WorkerInfo record = unknown_;
  record.roles = {"trainer"};
  const std::shared_ptr<Peer> peer = senders_.AddPeer(record);
  ASSERT_THAT(AdmitConfirmed(), IsOk());
  EXPECT_FALSE(call_->unconfirmed);
  EXPECT_EQ(call_->source, record);
  EXPECT_EQ(call_->counters, peer->counters());
  EXPECT_EQ(peer->counters()->totals().served, 1u);
  EXPECT_EQ(peer->counters()->totals().bytes_received, bytes);
  EXPECT_THAT(senders_.heard, ElementsAre(unknown_.name));
}

TEST_F(AdmissionTest, ConfirmedSenderMustHaveTheRolesOfItsRecord) {
  ASSERT_THAT(AdmitRequest(RequestFromUnknown(), /*begins_work=*/true,
                           {.caller = net::Identity{.job = "job",
                                                    .worker = "w2",
                                                    .roles = {"ps"}}}),
              IsOk());
  WorkerInfo record = unknown_;
  record.roles = {"trainer"};
  senders_.AddPeer(record);
  EXPECT_THAT(AdmitConfirmed(), StatusIs(absl::StatusCode::kUnauthenticated,
                                         HasSubstr("'trainer'")));
}

TEST_F(AdmissionTest, StateOfThisWorkerIsCheckedAgainAfterTheConfirmation) {
  ASSERT_THAT(AdmitRequest(RequestFromUnknown()), IsOk());
  senders_.AddPeer(unknown_);
  state_->SetFenced();
  EXPECT_THAT(AdmitConfirmed(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                         HasSubstr("must restart")));
}

TEST_F(AdmissionTest, IncarnationThatTurnsOutToBeAnothersIsRejected) {
  FakeRequest request = RequestFromUnknown();
  request.header.source = "w3";
  ASSERT_THAT(AdmitRequest(std::move(request)), IsOk());
  EXPECT_TRUE(call_->unconfirmed);
  senders_.AddPeer(unknown_);
  EXPECT_THAT(AdmitConfirmed(), StatusIs(absl::StatusCode::kUnauthenticated,
                                         HasSubstr(ToString(unknown_))));
}

TEST_F(AdmissionTest, SenderThatDepartedAfterItsConfirmationIsRejected) {
  ASSERT_THAT(AdmitRequest(RequestFromUnknown()), IsOk());
  EXPECT_THAT(AdmitConfirmed(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("no member")));
  senders_.SetLost(unknown_.incarnation);
  EXPECT_THAT(AdmitConfirmed(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("takes")));
}

TEST_F(AdmissionTest, MalformedMessagesAreInternal) {
  for (const char* bytes : {// A tag without its value.
                            "\x0a",
                            // A header, field 13, with such a tag.
                            "\x6a\x01\x0a"}) {
    call_ = std::make_unique<InboundCall>(
        state_, std::make_unique<FakeIncomingCall>(Payload(bytes)));
    EXPECT_THAT(
        admission_.Admit(*call_, {.begins_work = true, .quota = &quota_}),
        StatusIs(absl::StatusCode::kInternal));
  }
}

TEST_F(AdmissionTest, MessageForAnotherJobIsRejected) {
  FakeRequest request = RequestFromPeer();
  request.header.job = "night\nly";
  EXPECT_THAT(AdmitRequest(std::move(request)),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("'night\\nly'"), HasSubstr("'job'"))));
  EXPECT_THAT(senders_.heard, IsEmpty());
}

TEST_F(AdmissionTest, ForgedNamesAreShortenedInErrors) {
  FakeRequest request = RequestFromPeer();
  const std::string job(2000, 'x');
  request.header.job = job;
  const absl::Status status = AdmitRequest(std::move(request));
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_LT(status.message().size(), 500u);
}

TEST_F(AdmissionTest, MessageForAnotherWorkerIsRejected) {
  FakeRequest request = RequestFromPeer();
  request.header.destination = "w7";
  EXPECT_THAT(AdmitRequest(std::move(request)),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("'w7'"), HasSubstr(ToString(self_)))));
}

TEST_F(AdmissionTest, MessageForAnotherIncarnationIsRejected) {
  FakeRequest request = RequestFromPeer();
  request.header.destination_incarnation = Incarnation{5};
  EXPECT_THAT(
      AdmitRequest(std::move(request)),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               AllOf(HasSubstr("0000000000000005"), HasSubstr("reached"))));
}

TEST_F(AdmissionTest, InvalidSenderNameIsRejected) {
  FakeRequest request = RequestFromPeer();
  request.header.source = "a b";
  request.header.source_incarnation = Incarnation{5};
  EXPECT_THAT(AdmitRequest(std::move(request)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("the sender's name")));
}

// Streams, references and message counts are kept by incarnation.
TEST_F(AdmissionTest, IncarnationOfAnotherNameIsRejected) {
  FakeRequest request = RequestFromPeer();
  request.header.source = "w2";
  EXPECT_THAT(AdmitRequest(request),
              StatusIs(absl::StatusCode::kUnauthenticated,
                       AllOf(HasSubstr("'w2'"), HasSubstr(ToString(peer_)))));
  EXPECT_THAT(senders_.heard, IsEmpty());
  // This worker knows itself, although it is not in the directory.
  request.header.source_incarnation = self_.incarnation;
  EXPECT_THAT(
      AdmitRequest(request),
      StatusIs(absl::StatusCode::kUnauthenticated, HasSubstr(ToString(self_))));
  request.header.source = self_.name;
  EXPECT_THAT(AdmitRequest(request), IsOk());
}

// A fenced worker has forgotten which calls it has run.
TEST_F(AdmissionTest, FencedWorkerMayHaveRunNumberedCallsOnly) {
  state_->SetFenced();
  const absl::Status numbered = AdmitRequest(RequestFromPeer(1));
  EXPECT_THAT(numbered, StatusIs(absl::StatusCode::kFailedPrecondition,
                                 HasSubstr("must restart")));
  EXPECT_EQ(GetErrorDetail(numbered), DetailOf(self_, true));
  const absl::Status repeatable = AdmitRequest(RequestFromPeer(0));
  EXPECT_THAT(repeatable, StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(GetErrorDetail(repeatable), DetailOf(self_, false));
}

TEST_F(AdmissionTest, StoppingWorkerRejectsCallsWithoutDetail) {
  state_->SetPhase(AgentState::Phase::kStopping);
  const absl::Status stopping = AdmitRequest(RequestFromPeer());
  EXPECT_THAT(stopping, StatusIs(absl::StatusCode::kUnavailable,
                                 HasSubstr("is stopping")));
  // So that the pipeline discards a copy of a call that ran.
  EXPECT_EQ(GetErrorDetail(stopping), std::nullopt);
  EXPECT_EQ(call_->source.incarnation, peer_.incarnation);
  EXPECT_EQ(call_->call_id, 1u);
  state_->SetPhase(AgentState::Phase::kStopped);
  EXPECT_THAT(AdmitRequest(RequestFromPeer()),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("was shut down")));
}

TEST_F(AdmissionTest, LeavingWorkerRejectsOnlyCallsThatBeginWork) {
  ASSERT_TRUE(state_->BeginLeaving());
  const absl::Status work =
      AdmitRequest(RequestFromPeer(), /*begins_work=*/true);
  EXPECT_THAT(work, StatusIs(absl::StatusCode::kUnavailable,
                             HasSubstr("is leaving the job")));
  EXPECT_EQ(GetErrorDetail(work), std::nullopt);
  EXPECT_THAT(AdmitRequest(RequestFromPeer(), /*begins_work=*/false), IsOk());
}

TEST_F(AdmissionTest, WorkerThatMayBeFencedIsUnavailable) {
  senders_.SetMaybeFenced([] { return true; });
  const absl::Status status =
      AdmitRequest(RequestFromPeer(), /*begins_work=*/false);
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("stalled")));
  EXPECT_EQ(GetErrorDetail(status), std::nullopt);
  EXPECT_THAT(senders_.heard, IsEmpty());
}

// MaybeFenced becomes false when the worker learns that it is fenced.
TEST_F(AdmissionTest, WorkerFencedMeanwhileRejectsTheCall) {
  senders_.SetMaybeFenced([this] {
    state_->SetFenced();
    return false;
  });
  EXPECT_THAT(AdmitRequest(RequestFromPeer()),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("must restart")));
}

TEST_F(AdmissionTest, SenderLostInThisWorkersViewNeedNotRestart) {
  senders_.SetLost(peer_.incarnation);
  const absl::Status status = AdmitRequest(RequestFromPeer());
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable,
                               HasSubstr(ToString(self_) + " takes " +
                                         ToString(call_->source))));
  EXPECT_EQ(GetErrorDetail(status), DetailOf(self_, true));
  EXPECT_THAT(senders_.heard, IsEmpty());
  EXPECT_EQ(sender_->counters()->totals().served, 0u);
}

TEST_F(AdmissionTest, SenderDeclaredLostMustRestart) {
  senders_.SetLost(peer_.incarnation);
  senders_.SetDeparted(peer_.incarnation);
  const absl::Status numbered = AdmitRequest(RequestFromPeer(1));
  EXPECT_THAT(numbered, StatusIs(absl::StatusCode::kFailedPrecondition,
                                 HasSubstr("must restart")));
  EXPECT_EQ(GetErrorDetail(numbered), DetailOf(self_, true));
  EXPECT_EQ(GetErrorDetail(AdmitRequest(RequestFromPeer(0))),
            DetailOf(self_, false));
}

// The directory's own record follows a moment later.
TEST_F(AdmissionTest, PeerMarkedLostIsRejected) {
  ASSERT_TRUE(sender_->MarkLost(absl::UnavailableError("silent")));
  EXPECT_THAT(AdmitRequest(RequestFromPeer()),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("takes")));
  EXPECT_THAT(senders_.heard, IsEmpty());
}

// Its leave notice may come after the event that it left.
TEST_F(AdmissionTest, SenderThatLeftMayCallMethodsForLeftWorkers) {
  const auto admit = [this](bool for_left_workers) {
    call_ = std::make_unique<InboundCall>(state_,
                                          Incoming(RequestFromPeer(), end_));
    return admission_.Admit(*call_, {.for_left_workers = for_left_workers});
  };
  sender_->MarkLeft(absl::UnavailableError("left"));
  EXPECT_THAT(admit(true), IsOk());
  EXPECT_EQ(call_->source, peer_);
  EXPECT_THAT(admit(false), StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(AdmissionTest, SenderThatWasLostMayCallNothing) {
  sender_->MarkLost(absl::UnavailableError("lost"));
  call_ =
      std::make_unique<InboundCall>(state_, Incoming(RequestFromPeer(), end_));
  EXPECT_THAT(admission_.Admit(*call_, {.for_left_workers = true}),
              StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(AdmissionTest, UnknownSenderThatIsLostIsRejected) {
  FakeRequest request = RequestFromPeer();
  request.header.source = "w2";
  request.header.source_incarnation = Incarnation{5};
  senders_.SetLost(Incarnation{5});
  EXPECT_THAT(AdmitRequest(std::move(request)),
              StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(AdmissionTest, CertificateMustNameTheSender) {
  EXPECT_THAT(AdmitFrom(absl::UnauthenticatedError("names no worker")),
              StatusIs(absl::StatusCode::kUnauthenticated,
                       HasSubstr("names no worker")));
  EXPECT_THAT(AdmitFrom(net::Identity{.job = "job", .worker = "w2"}),
              StatusIs(absl::StatusCode::kUnauthenticated,
                       AllOf(HasSubstr("job/w2"), HasSubstr("job/w1"))));
  EXPECT_THAT(
      AdmitFrom(net::Identity{.job = "other", .worker = "w1"}),
      StatusIs(absl::StatusCode::kUnauthenticated, HasSubstr("other/w1")));
  // Nothing of them is believed: not even the number of the call.
  EXPECT_EQ(call_->call_id, 0u);
  EXPECT_THAT(senders_.heard, IsEmpty());
  EXPECT_THAT(AdmitFrom(net::Identity{.job = "job", .worker = "w1"}), IsOk());
}

TEST_F(AdmissionTest, CallerHasTheRolesOfItsCertificate) {
  ASSERT_THAT(
      AdmitFrom(net::Identity{
          .job = "job", .worker = "w1", .roles = {"observer", "trainer"}}),
      IsOk());
  EXPECT_THAT(call_->source.roles, ElementsAre("observer", "trainer"));
}

TEST_F(AdmissionTest, RolesOfTheRecordMustBeProven) {
  WorkerInfo trainer = peer_;
  trainer.roles = {"trainer"};
  senders_.AddPeer(trainer);
  EXPECT_THAT(
      AdmitFrom(net::Identity{.job = "job", .worker = "w1", .roles = {"ps"}}),
      StatusIs(absl::StatusCode::kUnauthenticated,
               AllOf(HasSubstr("'trainer'"), HasSubstr("the role ps"))));
  ASSERT_THAT(AdmitFrom(net::Identity{
                  .job = "job", .worker = "w1", .roles = {"ps", "trainer"}}),
              IsOk());
  EXPECT_THAT(call_->source.roles, ElementsAre("ps", "trainer"));
}

TEST_F(AdmissionTest, RolesOfTheRecordCountWithoutCertificates) {
  WorkerInfo trainer = peer_;
  trainer.roles = {"trainer"};
  senders_.AddPeer(trainer);
  ASSERT_THAT(AdmitFrom(std::nullopt), IsOk());
  EXPECT_THAT(call_->source.roles, ElementsAre("trainer"));
}

TEST_F(AdmissionTest, CallAboveTheQuotaIsRejectedUntilAnotherEnds) {
  CallQuota quota({.max_calls_per_peer = 1});
  const Admitted first = Admit(RequestFromPeer(1), &quota);
  EXPECT_EQ(sender_->counters()->totals().served, 1u);
  std::shared_ptr<const End> end;
  InboundCall second(state_, Incoming(RequestFromPeer(2), end));
  EXPECT_THAT(admission_.Admit(second, {.begins_work = true, .quota = &quota}),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("max_calls_per_peer")));
  EXPECT_EQ(sender_->counters()->totals().served, 1u);
  first.call->reservation = CallQuota::Reservation();
  InboundCall third(state_, Incoming(RequestFromPeer(3), end));
  EXPECT_THAT(admission_.Admit(third, {.begins_work = true, .quota = &quota}),
              IsOk());
}

TEST_F(AdmissionTest, CallWithoutQuotaIsNotCounted) {
  const Admitted call = Admit(RequestFromPeer(), /*quota=*/nullptr);
  EXPECT_TRUE(call.call->message.has_value());
  EXPECT_EQ(sender_->counters()->totals().served, 0u);
}

}  // namespace
}  // namespace hawser::rpc
