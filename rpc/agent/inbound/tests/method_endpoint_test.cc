#include "rpc/agent/inbound/method_endpoint.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/future.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/agent/inbound/caller_permission.h"
#include "rpc/agent/inbound/inbound_call.h"
#include "rpc/agent/inbound/reply_sender.h"
#include "rpc/functions/method.h"
#include "rpc/functions/method_definition.h"
#include "rpc/functions/method_table.h"
#include "rpc/functions/run_on.h"
#include "rpc/identity/worker_info.h"
#include "rpc/peers/call_quota.h"
#include "rpc/testing/fakes/fake_incoming_call.h"
#include "rpc/testing/fakes/inbound_test_fixture.h"
#include "rpc/transport/cancellation.h"
#include "rpc/wire/lazy_tensor.h"
#include "rpc/wire/message_interceptor.h"
#include "tensor/tensor.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::hawser::tensor::Tensor;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class MethodEndpointTest : public InboundTestFixture {
 protected:
  // The handler keeps its request, and returns the future of reply_.
  async::Future<RawMessage> Handle(const MethodCall& call, RawMessage request) {
    method_call_ = call;
    request_ = std::move(request);
    return reply_.future();
  }

  const MethodDefinition definition_{.name = "test.Service.M", .path = ""};
  RegisteredMethod method_{
      .definition = &definition_,
      .handler =
          [this](const MethodCall& call, RawMessage request) {
            return Handle(call, std::move(request));
          },
      .options = MethodOptions()};
  CallQuota quota_{CallLimits{}};
  CallerPermission permission_{state_};
  ReplySender replies_{state_};
  const MethodEndpoint endpoint_{{.state = state_,
                                  .method = &method_,
                                  .quota = &quota_,
                                  .permission = &permission_,
                                  .replies = &replies_}};
  async::Promise<RawMessage> reply_;
  std::optional<MethodCall> method_call_;
  RawMessage request_;
};

TEST_F(MethodEndpointTest, OptionsOfTheMethodApply) {
  EXPECT_EQ(&endpoint_.definition(), &definition_);
  EXPECT_EQ(endpoint_.quota(), &quota_);
  EXPECT_FALSE(endpoint_.hot());
  EXPECT_FALSE(endpoint_.reads_tensors());
  const Admitted admitted = Admit(RequestFromPeer());
  EXPECT_EQ(endpoint_.run_on(*admitted.call).kind(), RunOn::Kind::kPool);
  method_.options.counted = false;
  method_.options.lazy_tensors = true;
  EXPECT_FALSE(endpoint_.for_unconfirmed_senders());
  method_.options.for_unconfirmed_senders = true;
  EXPECT_TRUE(endpoint_.for_unconfirmed_senders());
  method_.options.run_on = RunOn::Queue("a");
  EXPECT_EQ(endpoint_.quota(), nullptr);
  EXPECT_TRUE(endpoint_.reads_tensors());
  EXPECT_EQ(endpoint_.run_on(*admitted.call).queue(), "a");
}

TEST_F(MethodEndpointTest, ObserversMayCallOnlyMethodsForThem) {
  const Admitted admitted = Admit(RequestFromPeer());
  admitted.call->source.roles = {"observer"};
  EXPECT_THAT(endpoint_.Check(*admitted.call),
              StatusIs(absl::StatusCode::kPermissionDenied));
  method_.options.for_observers = true;
  EXPECT_THAT(endpoint_.Check(*admitted.call), IsOk());
}

TEST_F(MethodEndpointTest, LargeRequestsDoNotRunInline) {
  const Admitted admitted = Admit(RequestFromPeer());
  admitted.call->request_bytes = size_t{64} << 10;
  EXPECT_TRUE(endpoint_.MayRunInline(*admitted.call));
  ++admitted.call->request_bytes;
  EXPECT_FALSE(endpoint_.MayRunInline(*admitted.call));
}

TEST_F(MethodEndpointTest, HandlerGetsTheRequestAndItsContext) {
  const auto cancellation = std::make_shared<Cancellation>();
  const async::MonotonicTime deadline =
      async::AddDelay(clock_.Now(), absl::Seconds(3));
  FakeRequest request = RequestFromPeer();
  request.body = "\x0a\x02hi";
  const Admitted admitted =
      Admit(request, /*quota=*/nullptr,
            {.deadline = deadline, .cancellation = cancellation});
  ASSERT_THAT(endpoint_.CheckBeforeRun(*admitted.call), IsOk());
  endpoint_.Run(admitted.call, {Tensor::Arange(2)});
  EXPECT_EQ(request_.body, "\x0a\x02hi");
  EXPECT_EQ(request_.tensors.size(), 1u);
  ASSERT_TRUE(method_call_.has_value());
  EXPECT_EQ(method_call_->peer, peer_);
  EXPECT_EQ(method_call_->deadline, deadline);
  EXPECT_EQ(method_call_->cancellation, cancellation);
  EXPECT_EQ(method_call_->request_bytes, Encode(request)->size());
  EXPECT_TRUE(method_call_->tensors.empty());
  EXPECT_FALSE(admitted.call->message.has_value());
}

TEST_F(MethodEndpointTest, ReplyIsSentWhenItsFutureCompletes) {
  Admitted admitted = Admit(RequestFromPeer());
  endpoint_.Run(admitted.call, {});
  EXPECT_EQ(admitted.end->kind, Kind::kPending);
  EXPECT_EQ(state_->async_inbound_calls().load(), 1);
  admitted.call = nullptr;
  EXPECT_EQ(state_->inbound_calls().value(), 1);
  reply_.Set(RawMessage{"\x0a\x02yo", {Tensor::Arange(2)}});
  const auto reply = admitted.end->Parse();
  ASSERT_THAT(reply, IsOk());
  EXPECT_EQ(reply->body, "\x0a\x02yo");
  ASSERT_EQ(reply->tensors.size(), 1u);
  EXPECT_THAT(reply->tensors[0].ToVector<float>(), ElementsAre(0, 1));
  EXPECT_EQ(state_->async_inbound_calls().load(), 0);
  EXPECT_EQ(state_->inbound_calls().value(), 0);
}

TEST_F(MethodEndpointTest, CallThatIsRepliedAtOnceIsNotAsynchronous) {
  reply_.Set(RawMessage());
  const Admitted admitted = Admit(RequestFromPeer());
  endpoint_.Run(admitted.call, {});
  EXPECT_THAT(admitted.end->reply, IsOk());
  EXPECT_EQ(state_->async_inbound_calls().load(), 0);
}

TEST_F(MethodEndpointTest, ErrorOfTheHandlerIsReplied) {
  const Admitted admitted = Admit(RequestFromPeer());
  endpoint_.Run(admitted.call, {});
  reply_.Set(absl::DataLossError("a hole"));
  EXPECT_THAT(admitted.end->reply,
              StatusIs(absl::StatusCode::kDataLoss, "worker 'w0': a hole"));
}

TEST_F(MethodEndpointTest, InvalidFutureIsInternal) {
  method_.handler = [](const MethodCall&, RawMessage) {
    return async::Future<RawMessage>();
  };
  const Admitted admitted = Admit(RequestFromPeer());
  endpoint_.Run(admitted.call, {});
  EXPECT_THAT(admitted.end->reply,
              StatusIs(absl::StatusCode::kInternal, HasSubstr("not valid")));
  EXPECT_EQ(state_->async_inbound_calls().load(), 0);
}

TEST_F(MethodEndpointTest, ThrowingHandlerIsInternal) {
  method_.handler = [](const MethodCall&,
                       RawMessage) -> async::Future<RawMessage> {
    throw std::runtime_error("out of range");
  };
  const Admitted admitted = Admit(RequestFromPeer());
  endpoint_.Run(admitted.call, {});
  EXPECT_THAT(admitted.end->reply, StatusIs(absl::StatusCode::kInternal,
                                            AllOf(HasSubstr("the method"),
                                                  HasSubstr("out of range"))));
}

TEST_F(MethodEndpointTest, StoppedAgentDropsTheReply) {
  Admitted admitted = Admit(RequestFromPeer());
  endpoint_.Run(admitted.call, {});
  admitted.call = nullptr;
  state_->gate().Close();
  reply_.Set(RawMessage());
  EXPECT_EQ(admitted.end->kind, Kind::kDropped);
}

TEST_F(MethodEndpointTest, BytesOfTheRequestAreReleasedWhenItRuns) {
  const FakeRequest request = RequestFromPeer();
  const size_t bytes = Encode(request)->size();
  CallQuota quota({.max_request_bytes_per_peer = bytes});
  const Admitted admitted = Admit(request, &quota);
  EXPECT_THAT(quota.Admit(peer_.name, bytes),
              StatusIs(absl::StatusCode::kResourceExhausted));
  endpoint_.Run(admitted.call, {});
  EXPECT_EQ(admitted.end->kind, Kind::kPending);
  EXPECT_THAT(quota.Admit(peer_.name, bytes), IsOk());
}

class LazyMethodEndpointTest : public MethodEndpointTest {
 protected:
  void SetUp() override { method_.options.lazy_tensors = true; }

  FakeRequest RequestWithTensors() const {
    FakeRequest request = RequestFromPeer();
    request.body = "\x0a\x02hi";
    request.tensors = {Tensor::Arange(1000), Tensor::Arange(2)};
    return request;
  }
};

TEST_F(LazyMethodEndpointTest, TensorsAreReadInBlocks) {
  const Admitted admitted = Admit(RequestWithTensors());
  ASSERT_THAT(endpoint_.CheckBeforeRun(*admitted.call), IsOk());
  endpoint_.Run(admitted.call, {});
  EXPECT_EQ(request_.body, "\x0a\x02hi");
  EXPECT_TRUE(request_.tensors.empty());
  ASSERT_TRUE(method_call_.has_value());
  ASSERT_EQ(method_call_->tensors.size(), 2u);
  EXPECT_EQ(state_->transfers().totals().tensor_bytes_received, 0u);
  const LazyTensor& tensor = method_call_->tensors[0];
  std::vector<float> all;
  std::vector<float> block(250);
  for (size_t offset = 0; offset < tensor.bytes(); offset += 1000) {
    ASSERT_THAT(
        tensor.ReadInto(offset, std::as_writable_bytes(std::span(block))),
        IsOk());
    all.insert(all.end(), block.begin(), block.end());
  }
  EXPECT_EQ(all, Tensor::Arange(1000).ToVector<float>());
  EXPECT_EQ(state_->transfers().totals().tensor_bytes_received, 4000u);
}

TEST_F(LazyMethodEndpointTest, TensorsMayOutliveTheCall) {
  Admitted admitted = Admit(RequestWithTensors());
  endpoint_.Run(admitted.call, {});
  admitted.call = nullptr;
  reply_.Set(RawMessage());
  EXPECT_EQ(state_->inbound_calls().value(), 0);
  ASSERT_TRUE(method_call_.has_value());
  ASSERT_EQ(method_call_->tensors.size(), 2u);
  const auto tensor = method_call_->tensors[1].Read();
  ASSERT_THAT(tensor, IsOk());
  EXPECT_THAT(tensor->ToVector<float>(), ElementsAre(0, 1));
}

TEST_F(LazyMethodEndpointTest, RecordedCallIsInvalid) {
  FakeRequest request = RequestWithTensors();
  request.header.autograd = AutogradMetadata{.context_id = 3};
  const Admitted recorded = Admit(request);
  EXPECT_THAT(endpoint_.CheckBeforeRun(*recorded.call),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("'test.Service.M'"),
                             HasSubstr("intercept_messages"))));
  method_.options.lazy_tensors = false;
  EXPECT_THAT(endpoint_.CheckBeforeRun(*recorded.call), IsOk());
}

TEST_F(LazyMethodEndpointTest, BytesOfTheRequestCountUntilTheCallEnds) {
  const FakeRequest request = RequestWithTensors();
  const size_t bytes = Encode(request)->size();
  CallQuota quota({.max_request_bytes_per_peer = bytes});
  Admitted admitted = Admit(request, &quota);
  endpoint_.Run(admitted.call, {});
  admitted.call = nullptr;
  EXPECT_THAT(quota.Admit(peer_.name, 1),
              StatusIs(absl::StatusCode::kResourceExhausted));
  reply_.Set(RawMessage());
  EXPECT_EQ(admitted.end->kind, Kind::kReplied);
  EXPECT_THAT(quota.Admit(peer_.name, bytes), IsOk());
}

TEST_F(LazyMethodEndpointTest, MalformedTensorsAreAnError) {
  FakeRequest request = RequestFromPeer();
  // A tensor with a malformed header, field 14, and one byte, field 15.
  request.body = "\x72\x01\x0a\x7a\x01x";
  const Admitted admitted = Admit(std::move(request));
  endpoint_.Run(admitted.call, {});
  EXPECT_FALSE(method_call_.has_value());
  EXPECT_THAT(admitted.end->reply, StatusIs(absl::StatusCode::kInternal));
}

}  // namespace
}  // namespace hawser::rpc
