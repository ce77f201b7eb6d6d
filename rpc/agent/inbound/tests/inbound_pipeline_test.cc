#include "rpc/agent/inbound/inbound_pipeline.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/run_time.h"
#include "async/task_local.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/agent/call_observer.h"
#include "rpc/agent/current_call.h"
#include "rpc/agent/inbound/endpoint.h"
#include "rpc/agent/inbound/function_runner.h"
#include "rpc/agent/inbound/inbound_call.h"
#include "rpc/agent/inbound/reply_sender.h"
#include "rpc/agent/state/agent_state.h"
#include "rpc/errors/error_detail.h"
#include "rpc/functions/method_definition.h"
#include "rpc/functions/run_on.h"
#include "rpc/identity/trace_context.h"
#include "rpc/identity/worker_info.h"
#include "rpc/peers/call_quota.h"
#include "rpc/testing/fakes/fake_incoming_call.h"
#include "rpc/testing/fakes/fake_message_interceptor.h"
#include "rpc/testing/fakes/inbound_test_fixture.h"
#include "rpc/wire/message_interceptor.h"
#include "tensor/tensor.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::StatusIs;
using ::hawser::tensor::Tensor;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constinit const async::TaskLocal<int> kMark;

// A method whose steps do as the test says and are recorded in `steps`.
class FakeEndpoint final : public Endpoint {
 public:
  explicit FakeEndpoint(std::vector<std::string>* steps) : steps_(*steps) {}

  MethodDefinition method{.name = "test.Service.M",
                          .path = "/test.Service/M",
                          .at_most_once = true};
  CallQuota* call_quota = nullptr;
  absl::Status check;
  bool for_unconfirmed = false;
  RunOn where = RunOn::Inline();
  bool may_run_inline = true;
  absl::Status check_before_run;
  bool lazy = false;
  // Replies if true; otherwise the test has the call.
  bool replies = true;

  mutable async::RunTime time;
  // Set by Run.
  mutable std::shared_ptr<InboundCall> call;
  mutable size_t num_tensors = 0;
  mutable std::optional<CurrentCall> current;
  mutable int mark = 0;
  mutable bool inside = false;
  const AgentState* state = nullptr;
  const ReplySender* sender = nullptr;

  const MethodDefinition& definition() const override { return method; }
  CallQuota* quota() const override { return call_quota; }
  absl::Status Check(InboundCall& checked) const override {
    steps_.push_back(absl::StrCat("check ", checked.call_id));
    return check;
  }
  bool for_unconfirmed_senders() const override { return for_unconfirmed; }
  const RunOn& run_on(const InboundCall&) const override { return where; }
  bool MayRunInline(const InboundCall&) const override {
    return may_run_inline;
  }
  async::RunTime& run_time(const InboundCall&) const override { return time; }
  absl::Status CheckBeforeRun(InboundCall&) const override {
    steps_.push_back("check before run");
    return check_before_run;
  }
  bool reads_tensors() const override { return lazy; }
  void Run(const std::shared_ptr<InboundCall>& run,
           std::vector<Tensor> tensors) const override {
    steps_.push_back("run");
    num_tensors = tensors.size();
    if (CurrentCall::Get() != nullptr) current = *CurrentCall::Get();
    if (kMark.get() != nullptr) mark = *kMark.get();
    inside = AgentState::InsideScope::IsInside(state);
    if (replies) {
      sender->Send(*run, "", {});
    } else {
      call = run;
    }
  }

 private:
  std::vector<std::string>& steps_;
};

// Records calls in `steps`.
class FakeObserver final : public CallObserver {
 public:
  std::vector<std::string>* steps = nullptr;
  // Replaces the trace of calls, unless empty.
  TraceContext replacement;

  TraceContext trace;
  WorkerInfo peer;
  absl::Status status;
  uint64_t request_bytes = 0;
  uint64_t reply_bytes = 0;

  std::unique_ptr<Call> Begin(const CallStart& start) override {
    steps->push_back(absl::StrCat("begin ", std::string(start.method)));
    EXPECT_EQ(start.side, CallStart::Side::kServer);
    EXPECT_EQ(start.function, "");
    trace = *start.trace;
    peer = start.peer;
    if (replacement.IsValid()) *start.trace = replacement;
    return std::make_unique<ObservedCall>(this);
  }

 private:
  class ObservedCall final : public Call {
   public:
    explicit ObservedCall(FakeObserver* observer) : observer_(*observer) {}
    void End(const CallEnd& end) override {
      observer_.steps->push_back("end");
      observer_.status = end.status;
      observer_.request_bytes = end.request_bytes;
      observer_.reply_bytes = end.reply_bytes;
    }

   private:
    FakeObserver& observer_;
  };
};

class InboundPipelineTest : public InboundTestFixture {
 protected:
  InboundPipelineTest() : InboundPipelineTest(nullptr) {}
  explicit InboundPipelineTest(std::shared_ptr<CallObserver> observer)
      : InboundTestFixture(observer == nullptr
                               ? CallObservers()
                               : CallObservers{std::move(observer)}) {
    endpoint_.state = state_.get();
    endpoint_.sender = &replies_;
  }

  std::shared_ptr<const End> Call(
      FakeRequest request,
      FakeIncomingCall::Options options = FakeIncomingCall::Options()) {
    std::shared_ptr<const End> end;
    auto incoming = Incoming(std::move(request), end, std::move(options));
    pipeline_.OnCall(endpoint_, std::move(incoming));
    return end;
  }

  // A request of a worker that is not a known peer.
  FakeRequest RequestFromUnknown(uint64_t call_id = 1) const {
    FakeRequest request = RequestFromPeer(call_id);
    request.header.source = unknown_.name;
    request.header.source_rank = unknown_.id;
    request.header.source_incarnation = unknown_.incarnation;
    return request;
  }
  // The store answers that the sender of the call that waited longest is a
  // member.
  void ConfirmUnknown() {
    senders_.AddPeer(unknown_);
    senders_.FinishConfirm(absl::OkStatus());
  }

  const WorkerInfo unknown_ = FakeServiceHost::MakeWorker(2);
  std::vector<std::string> steps_;
  FakeEndpoint endpoint_{&steps_};
  const ReplySender replies_{state_};
  FunctionRunner runner_{state_};
  InboundPipeline pipeline_{state_, &senders_, &replies_, &runner_};
};

TEST_F(InboundPipelineTest, InlineCallPassesAllStepsInTheCallingThread) {
  const auto end = Call(RequestFromPeer());
  EXPECT_THAT(steps_, ElementsAre("check 1", "check before run", "run"));
  EXPECT_EQ(end->kind, Kind::kReplied);
  EXPECT_THAT(end->reply, async::IsOk());
  EXPECT_EQ(executor_.num_queued(), 0u);
  EXPECT_TRUE(endpoint_.inside);
  EXPECT_EQ(state_->inbound_calls().value(), 0);
}

TEST_F(InboundPipelineTest, OtherCallsRunOnTheirExecutors) {
  endpoint_.where = RunOn::Pool();
  const auto end = Call(RequestFromPeer());
  EXPECT_THAT(steps_, ElementsAre("check 1"));
  EXPECT_EQ(end->kind, Kind::kPending);
  EXPECT_EQ(state_->inbound_calls().value(), 1);
  executor_.RunAll();
  EXPECT_THAT(steps_, ElementsAre("check 1", "check before run", "run"));
  EXPECT_EQ(end->kind, Kind::kReplied);
  EXPECT_TRUE(endpoint_.inside);
}

TEST_F(InboundPipelineTest, InlineCallMayBeMovedToThePool) {
  endpoint_.may_run_inline = false;
  const auto end = Call(RequestFromPeer());
  EXPECT_EQ(end->kind, Kind::kPending);
  executor_.RunAll();
  EXPECT_EQ(end->kind, Kind::kReplied);
}

TEST_F(InboundPipelineTest, CallsOfAQueueWaitForEachOther) {
  endpoint_.where = RunOn::Queue("a");
  runner_.ExecutorOf(endpoint_.where).Post([this] {
    // Other threads of the pool would run all that is ready now.
    executor_.RunAll();
    steps_.push_back("first ends");
  });
  const auto end = Call(RequestFromPeer());
  executor_.RunAll();
  EXPECT_THAT(steps_,
              ElementsAre("check 1", "first ends", "check before run", "run"));
  EXPECT_EQ(end->kind, Kind::kReplied);
}

TEST_F(InboundPipelineTest, RejectedCallIsNotChecked) {
  FakeRequest request = RequestFromPeer();
  request.header.job = "other";
  const auto end = Call(std::move(request));
  EXPECT_THAT(steps_, IsEmpty());
  EXPECT_THAT(end->reply, StatusIs(absl::StatusCode::kFailedPrecondition,
                                   HasSubstr("worker 'w0': ")));
}

TEST_F(InboundPipelineTest, LeavingWorkerAcceptsWhatDoesNotBeginWork) {
  ASSERT_TRUE(state_->BeginLeaving());
  EXPECT_THAT(Call(RequestFromPeer())->reply,
              StatusIs(absl::StatusCode::kUnavailable));
  endpoint_.method.at_most_once = false;
  EXPECT_THAT(Call(RequestFromPeer())->reply, async::IsOk());
}

TEST_F(InboundPipelineTest, CallCountsInTheQuotaOfItsEndpoint) {
  CallQuota quota({.max_calls_per_peer = 1});
  endpoint_.call_quota = &quota;
  endpoint_.where = RunOn::Pool();
  const auto first = Call(RequestFromPeer(1));
  EXPECT_THAT(Call(RequestFromPeer(2))->reply,
              StatusIs(absl::StatusCode::kResourceExhausted));
  executor_.RunAll();
  EXPECT_THAT(first->reply, async::IsOk());
  const auto third = Call(RequestFromPeer(3));
  EXPECT_EQ(third->kind, Kind::kPending);
}

TEST_F(InboundPipelineTest, ErrorOfTheCheckIsReplied) {
  endpoint_.check = absl::PermissionDeniedError("not for you");
  const auto end = Call(RequestFromPeer());
  EXPECT_THAT(steps_, ElementsAre("check 1"));
  EXPECT_THAT(end->reply, StatusIs(absl::StatusCode::kPermissionDenied,
                                   "worker 'w0': not for you"));
}

TEST_F(InboundPipelineTest, CallOfAnUnknownSenderWaitsForItsConfirmation) {
  const auto end = Call(RequestFromUnknown());
  EXPECT_THAT(senders_.confirming, ElementsAre(unknown_.name));
  EXPECT_THAT(steps_, IsEmpty());
  EXPECT_EQ(pipeline_.num_remembered_senders(), 0u);
  ConfirmUnknown();
  EXPECT_THAT(steps_, IsEmpty());
  executor_.RunAll();
  EXPECT_THAT(steps_, ElementsAre("check 1", "check before run", "run"));
  EXPECT_THAT(end->reply, async::IsOk());
  EXPECT_EQ(endpoint_.current->caller(), unknown_);
}

TEST_F(InboundPipelineTest, EndpointMayServeUnconfirmedSenders) {
  endpoint_.for_unconfirmed = true;
  EXPECT_THAT(Call(RequestFromUnknown(0))->reply, async::IsOk());
  EXPECT_THAT(senders_.confirming, IsEmpty());
}

// Otherwise a worker could fill the numbers of another that this worker does
// not know yet.
TEST_F(InboundPipelineTest, NothingIsKeptOfSendersThatAreNotConfirmed) {
  CallQuota quota({.max_calls_per_peer = 1});
  endpoint_.call_quota = &quota;
  const auto first = Call(RequestFromUnknown(100'000));
  // Refused before, during and after the lookup.
  const auto above = Call(RequestFromUnknown(100'001));
  EXPECT_THAT(above->reply, StatusIs(absl::StatusCode::kResourceExhausted));
  senders_.FinishConfirm(absl::FailedPreconditionError("is not a member"));
  executor_.RunAll();
  EXPECT_THAT(first->reply, StatusIs(absl::StatusCode::kFailedPrecondition,
                                     HasSubstr("is not a member")));
  ASSERT_TRUE(state_->BeginLeaving());
  const auto leaving = Call(RequestFromUnknown(100'002));
  EXPECT_THAT(leaving->reply, StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(steps_, IsEmpty());
  EXPECT_EQ(pipeline_.num_remembered_senders(), 0u);
  // A copy of each may run once the sender is known.
  for (const auto& end : {first, above, leaving}) {
    const std::optional<ErrorDetail> detail =
        GetErrorDetail(end->reply.status());
    ASSERT_TRUE(detail.has_value());
    EXPECT_TRUE(detail->maybe_applied);
  }
}

TEST_F(InboundPipelineTest, OneOfTwoCopiesRunsAfterTheConfirmation) {
  const auto first = Call(RequestFromUnknown(1));
  const auto copy = Call(RequestFromUnknown(1));
  ConfirmUnknown();
  ConfirmUnknown();
  executor_.RunAll();
  EXPECT_EQ(first->kind, Kind::kReplied);
  EXPECT_EQ(copy->kind, Kind::kDiscarded);
}

TEST_F(InboundPipelineTest, ConfirmedCallThatIsRefusedDoesNotRunLater) {
  const auto first = Call(RequestFromUnknown(1));
  endpoint_.check = absl::PermissionDeniedError("not for you");
  ConfirmUnknown();
  executor_.RunAll();
  EXPECT_THAT(first->reply, StatusIs(absl::StatusCode::kPermissionDenied));
  endpoint_.check = absl::OkStatus();
  EXPECT_EQ(Call(RequestFromUnknown(1))->kind, Kind::kDiscarded);
}

TEST_F(InboundPipelineTest, DuplicateIsDiscarded) {
  endpoint_.where = RunOn::Pool();
  const auto first = Call(RequestFromPeer(1));
  const auto copy = Call(RequestFromPeer(1));
  EXPECT_EQ(copy->kind, Kind::kDiscarded);
  executor_.RunAll();
  EXPECT_EQ(first->kind, Kind::kReplied);
  // Also after the reply, and only that number.
  EXPECT_EQ(Call(RequestFromPeer(1))->kind, Kind::kDiscarded);
  const auto next = Call(RequestFromPeer(2));
  executor_.RunAll();
  EXPECT_EQ(next->kind, Kind::kReplied);
  EXPECT_EQ(pipeline_.num_remembered_senders(), 1u);
}

TEST_F(InboundPipelineTest, ForgottenSenderBeginsAnew) {
  EXPECT_EQ(Call(RequestFromPeer(1))->kind, Kind::kReplied);
  pipeline_.Forget(peer_.incarnation);
  EXPECT_EQ(pipeline_.num_remembered_senders(), 0u);
  EXPECT_EQ(Call(RequestFromPeer(1))->kind, Kind::kReplied);
}

TEST_F(InboundPipelineTest, CallsThatMayRunTwiceAreNotFiltered) {
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(Call(RequestFromPeer(0))->kind, Kind::kReplied);
  }
  endpoint_.method.at_most_once = false;
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(Call(RequestFromPeer(1))->kind, Kind::kReplied);
  }
  EXPECT_EQ(pipeline_.num_remembered_senders(), 0u);
}

// Its caller must not conclude that the call did not run.
TEST_F(InboundPipelineTest, RefusedDuplicateIsDiscarded) {
  endpoint_.where = RunOn::Pool();
  const auto first = Call(RequestFromPeer(1));
  ASSERT_TRUE(state_->BeginLeaving());
  EXPECT_EQ(Call(RequestFromPeer(1))->kind, Kind::kDiscarded);
  // Another call did not run.
  const auto other = Call(RequestFromPeer(2));
  EXPECT_THAT(other->reply, StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(Call(RequestFromPeer(2))->kind, Kind::kDiscarded);
  executor_.RunAll();
  EXPECT_EQ(first->kind, Kind::kReplied);
}

// The roles of its caller became known after the first copy ran.
TEST_F(InboundPipelineTest, DuplicateThatFailsTheCheckIsDiscarded) {
  EXPECT_THAT(Call(RequestFromPeer(1))->reply, async::IsOk());
  endpoint_.check = absl::PermissionDeniedError("not for you");
  EXPECT_EQ(Call(RequestFromPeer(1))->kind, Kind::kDiscarded);
  EXPECT_THAT(Call(RequestFromPeer(2))->reply,
              StatusIs(absl::StatusCode::kPermissionDenied));
  // Nor does a copy run once the caller was told that the call did not.
  endpoint_.check = absl::OkStatus();
  EXPECT_EQ(Call(RequestFromPeer(2))->kind, Kind::kDiscarded);
}

TEST_F(InboundPipelineTest, RefusalThatAllowsForAnEarlierCopyIsReplied) {
  EXPECT_EQ(Call(RequestFromPeer(1))->kind, Kind::kReplied);
  state_->SetFenced();
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(Call(RequestFromPeer(1))->reply,
                StatusIs(absl::StatusCode::kFailedPrecondition));
  }
}

TEST_F(InboundPipelineTest, ErrorBeforeTheRunIsReplied) {
  endpoint_.check_before_run = absl::CancelledError("given up");
  const auto end = Call(RequestFromPeer());
  EXPECT_THAT(steps_, ElementsAre("check 1", "check before run"));
  EXPECT_THAT(end->reply,
              StatusIs(absl::StatusCode::kCancelled, "worker 'w0': given up"));
}

TEST_F(InboundPipelineTest, HandlerGetsTensorsAndTheCurrentCall) {
  const auto cancellation = std::make_shared<Cancellation>();
  const async::MonotonicTime deadline =
      async::AddDelay(clock_.Now(), absl::Seconds(3));
  FakeRequest request = RequestFromPeer();
  request.tensors = {Tensor::Arange(2), Tensor::Arange(3)};
  request.header.trace = {.traceparent = "00-a"};
  Call(std::move(request),
       {.deadline = deadline, .cancellation = cancellation});
  EXPECT_EQ(endpoint_.num_tensors, 2u);
  ASSERT_TRUE(endpoint_.current.has_value());
  EXPECT_EQ(endpoint_.current->caller(), peer_);
  EXPECT_EQ(endpoint_.current->deadline(), deadline);
  EXPECT_EQ(&endpoint_.current->cancellation(), cancellation.get());
  EXPECT_EQ(endpoint_.current->trace().traceparent, "00-a");
  EXPECT_EQ(CurrentCall::Get(), nullptr);
}

TEST_F(InboundPipelineTest, TensorsThatDoNotReadAreAnError) {
  FakeRequest request = RequestFromPeer();
  // A tensor with a malformed header, field 14, and one byte, field 15.
  request.body = "\x72\x01\x0a\x7a\x01x";
  const auto end = Call(std::move(request));
  EXPECT_THAT(steps_, ElementsAre("check 1", "check before run"));
  EXPECT_THAT(end->reply, StatusIs(absl::StatusCode::kInternal));
}

TEST_F(InboundPipelineTest, RecordedCallRunsInTheContextOfItsCaller) {
  FakeMessageInterceptor interceptor;
  state_->SetInterceptor(&interceptor);
  {
    async::TaskLocal<int>::Scope mark(kMark, 5);
    interceptor.on_request = async::TaskContext::Capture();
  }
  Call(RequestFromPeer(1));
  EXPECT_EQ(endpoint_.mark, 0);
  EXPECT_THAT(interceptor.requests, IsEmpty());
  FakeRequest request = RequestFromPeer(2);
  request.header.autograd = AutogradMetadata{.context_id = 3};
  request.tensors = {Tensor::Arange(1), Tensor::Arange(1)};
  request.requires_grad = {false, true};
  Call(request);
  EXPECT_EQ(endpoint_.mark, 5);
  ASSERT_EQ(interceptor.requests.size(), 1u);
  EXPECT_EQ(interceptor.requests[0].context_id, 3u);
  EXPECT_THAT(interceptor.requests[0].requires_grad, ElementsAre(false, true));
  EXPECT_EQ(kMark.get(), nullptr);
  interceptor.on_request = absl::NotFoundError("the context was deleted");
  request.header.call_id = 3;
  EXPECT_THAT(Call(request)->reply, StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(InboundPipelineTest, EndpointMayReadTheTensorsItself) {
  FakeMessageInterceptor interceptor;
  state_->SetInterceptor(&interceptor);
  endpoint_.lazy = true;
  endpoint_.replies = false;
  FakeRequest request = RequestFromPeer();
  request.tensors = {Tensor::Arange(2)};
  request.header.autograd = AutogradMetadata{.context_id = 3};
  Call(std::move(request));
  EXPECT_EQ(endpoint_.num_tensors, 0u);
  ASSERT_NE(endpoint_.call, nullptr);
  EXPECT_EQ(endpoint_.call->message->num_tensors(), 1u);
  EXPECT_THAT(interceptor.requests, IsEmpty());
}

TEST_F(InboundPipelineTest, StoppedAgentDropsCalls) {
  endpoint_.where = RunOn::Pool();
  const auto posted = Call(RequestFromPeer(1));
  state_->gate().Close();
  const auto late = Call(RequestFromPeer(2));
  EXPECT_EQ(late->kind, Kind::kDropped);
  EXPECT_THAT(steps_, ElementsAre("check 1"));
  executor_.RunAll();
  EXPECT_EQ(posted->kind, Kind::kDropped);
  EXPECT_THAT(steps_, ElementsAre("check 1"));
  EXPECT_EQ(state_->inbound_calls().value(), 0);
}

class ObservedInboundPipelineTest : public InboundPipelineTest {
 protected:
  ObservedInboundPipelineTest()
      : ObservedInboundPipelineTest(std::make_shared<FakeObserver>()) {}

  const std::shared_ptr<FakeObserver> observer_;

 private:
  explicit ObservedInboundPipelineTest(std::shared_ptr<FakeObserver> observer)
      : InboundPipelineTest(observer), observer_(std::move(observer)) {
    observer_->steps = &steps_;
  }
};

TEST_F(ObservedInboundPipelineTest, ObserverSeesBeginAndEnd) {
  endpoint_.where = RunOn::Pool();
  FakeRequest request = RequestFromPeer();
  request.tensors = {Tensor::Arange(100)};
  request.header.trace = {.traceparent = "00-a"};
  const auto end = Call(request);
  EXPECT_THAT(steps_, ElementsAre("check 1", "begin test.Service.M"));
  EXPECT_EQ(observer_->peer, peer_);
  EXPECT_EQ(observer_->trace.traceparent, "00-a");
  executor_.RunAll();
  EXPECT_THAT(steps_, ElementsAre("check 1", "begin test.Service.M",
                                  "check before run", "run", "end"));
  EXPECT_THAT(observer_->status, async::IsOk());
  EXPECT_EQ(observer_->request_bytes, Encode(request)->size());
  EXPECT_EQ(observer_->reply_bytes, end->reply->size());
}

TEST_F(ObservedInboundPipelineTest, ObserverSeesTheErrorThatIsReplied) {
  endpoint_.check_before_run = absl::CancelledError("given up");
  Call(RequestFromPeer());
  EXPECT_THAT(observer_->status,
              StatusIs(absl::StatusCode::kCancelled, "worker 'w0': given up"));
  EXPECT_EQ(observer_->reply_bytes, 0u);
}

TEST_F(ObservedInboundPipelineTest, DroppedCallEndsAsUnavailable) {
  endpoint_.replies = false;
  const auto end = Call(RequestFromPeer());
  EXPECT_THAT(steps_, ElementsAre("check 1", "begin test.Service.M",
                                  "check before run", "run"));
  endpoint_.call = nullptr;
  EXPECT_EQ(end->kind, Kind::kDropped);
  EXPECT_EQ(steps_.back(), "end");
  EXPECT_THAT(observer_->status,
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("dropped")));
}

TEST_F(ObservedInboundPipelineTest, TraceOfTheObserverIsThatOfTheCurrentCall) {
  observer_->replacement = {.traceparent = "00-b", .tracestate = "c"};
  FakeRequest request = RequestFromPeer();
  request.header.trace = {.traceparent = "00-a"};
  Call(std::move(request));
  ASSERT_TRUE(endpoint_.current.has_value());
  EXPECT_EQ(endpoint_.current->trace(), observer_->replacement);
}

TEST_F(ObservedInboundPipelineTest, RefusedCallsAndDuplicatesAreNotObserved) {
  FakeRequest foreign = RequestFromPeer();
  foreign.header.job = "other";
  Call(std::move(foreign));
  EXPECT_THAT(steps_, IsEmpty());
  Call(RequestFromPeer(1));
  steps_.clear();
  EXPECT_EQ(Call(RequestFromPeer(1))->kind, Kind::kDiscarded);
  endpoint_.check = absl::PermissionDeniedError("not for you");
  Call(RequestFromPeer(2));
  EXPECT_THAT(steps_, ElementsAre("check 1", "check 2"));
}

}  // namespace
}  // namespace hawser::rpc
