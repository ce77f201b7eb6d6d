#include "rpc/agent/inbound/reply_sender.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/errors/error_detail.h"
#include "rpc/functions/erased_value.h"
#include "rpc/testing/fakes/fake_incoming_call.h"
#include "rpc/testing/fakes/fake_message_interceptor.h"
#include "rpc/testing/fakes/inbound_test_fixture.h"
#include "rpc/wire/call_body.h"
#include "rpc/wire/decoder.h"
#include "rpc/wire/message_interceptor.h"
#include "tensor/tensor.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::hawser::tensor::Tensor;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kUrl[] = "type.example.com/test.Payload";

// A result that can only be kept behind a reference.
struct Table {
  static constexpr std::string_view kTypeName = "test.Table";
};

class ReplySenderTest : public InboundTestFixture {
 protected:
  using ParsedReply = FakeIncomingCall::ParsedReply;

  void SetUp() override { admitted_ = Admit(RequestFromPeer()); }

  InboundCall& call() { return *admitted_.call; }
  absl::Status error() const { return admitted_.end->reply.status(); }

  // Makes the call one that distributed autograd records.
  void Record() {
    call().autograd = AutogradMetadata{.context_id = 3};
    state_->SetInterceptor(&interceptor_);
  }

  FakeMessageInterceptor interceptor_;
  const ReplySender replies_{state_};
  Admitted admitted_;
};

TEST_F(ReplySenderTest, ErrorGetsTheNameOfThisWorkerAndADetail) {
  replies_.Fail(call(), absl::DataLossError("a hole"));
  EXPECT_THAT(error(),
              StatusIs(absl::StatusCode::kDataLoss, "worker 'w0': a hole"));
  EXPECT_EQ(GetErrorDetail(error()),
            (ErrorDetail{.worker = self_.name,
                         .incarnation = self_.incarnation,
                         .maybe_applied = false}));
}

TEST_F(ReplySenderTest, ForwardedErrorIsUnchanged) {
  absl::Status forwarded = absl::DataLossError("worker 'w9': a hole");
  const ErrorDetail detail{
      .worker = "w9", .incarnation = Incarnation{9}, .maybe_applied = true};
  SetErrorDetail(detail, forwarded);
  replies_.Fail(call(), forwarded);
  EXPECT_EQ(error(), forwarded);
}

TEST_F(ReplySenderTest, ErrorKeepsItsPayloads) {
  absl::Status status = absl::DataLossError("a hole");
  status.SetPayload(kUrl, absl::Cord("row 3"));
  replies_.Fail(call(), status);
  EXPECT_EQ(error().GetPayload(kUrl), absl::Cord("row 3"));
  EXPECT_TRUE(GetErrorDetail(error()).has_value());
}

TEST_F(ReplySenderTest, BodyAndTensorsAreSent) {
  replies_.Send(call(), "\x0a\x02hi", {Tensor::Arange(3)});
  const absl::StatusOr<ParsedReply> reply = admitted_.end->Parse();
  ASSERT_THAT(reply, IsOk());
  EXPECT_EQ(reply->body, "\x0a\x02hi");
  ASSERT_EQ(reply->tensors.size(), 1u);
  EXPECT_THAT(reply->tensors[0].ToVector<float>(), ElementsAre(0, 1, 2));
  EXPECT_EQ(reply->autograd, std::nullopt);
  EXPECT_EQ(sender_->counters()->totals().bytes_sent,
            admitted_.end->reply->size());
}

TEST_F(ReplySenderTest, TensorsThatCannotBeSentAreAnError) {
  replies_.Send(call(), "", {Tensor()});
  EXPECT_THAT(error(), StatusIs(absl::StatusCode::kInvalidArgument,
                                HasSubstr("worker 'w0': ")));
  EXPECT_EQ(sender_->counters()->totals().bytes_sent, 0u);
}

TEST_F(ReplySenderTest, ResultOfAFunctionIsEncoded) {
  replies_.SendResult(call(), Erase<int64_t>(42));
  const absl::StatusOr<ParsedReply> reply = admitted_.end->Parse();
  ASSERT_THAT(reply, IsOk());
  const absl::StatusOr<std::string_view> values = ParseCallResults(reply->body);
  ASSERT_THAT(values, IsOk());
  Decoder decoder(nullptr, nullptr, *values, {});
  EXPECT_THAT(decoder.ReadInt(), IsOkAndHolds(42));
  EXPECT_TRUE(decoder.AtEnd());
}

TEST_F(ReplySenderTest, TensorsOfAResultAreSent) {
  replies_.SendResult(call(), Erase<Tensor>(Tensor::Arange(2)));
  const absl::StatusOr<ParsedReply> reply = admitted_.end->Parse();
  ASSERT_THAT(reply, IsOk());
  ASSERT_EQ(reply->tensors.size(), 1u);
  EXPECT_THAT(reply->tensors[0].ToVector<float>(), ElementsAre(0, 1));
}

TEST_F(ReplySenderTest, ErrorOfAFunctionIsReplied) {
  replies_.SendResult(call(), absl::AbortedError("again"));
  EXPECT_THAT(error(),
              StatusIs(absl::StatusCode::kAborted, "worker 'w0': again"));
}

TEST_F(ReplySenderTest, ResultWithoutAnEncodingIsInvalid) {
  replies_.SendResult(call(), Erase(Table()));
  EXPECT_THAT(error(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("test.Table"), HasSubstr("reference"))));
}

TEST_F(ReplySenderTest, ReplyToARecordedCallIsRecorded) {
  Record();
  interceptor_.on_send = AutogradMetadata{
      .context_id = 3, .message_id = 8, .requires_grad = {true, false}};
  replies_.Send(call(), "", {Tensor::Arange(1), Tensor::Arange(2)});
  const absl::StatusOr<ParsedReply> reply = admitted_.end->Parse();
  ASSERT_THAT(reply, IsOk());
  ASSERT_TRUE(reply->autograd.has_value());
  EXPECT_EQ(reply->autograd->message_id, 8u);
  EXPECT_THAT(reply->autograd->requires_grad, ElementsAre(true, false));
  EXPECT_THAT(interceptor_.sent_to, ElementsAre(peer_.name));
}

TEST_F(ReplySenderTest, ReplyToAnotherCallIsNotRecorded) {
  state_->SetInterceptor(&interceptor_);
  interceptor_.on_send = AutogradMetadata{.context_id = 3};
  replies_.Send(call(), "", {});
  EXPECT_THAT(interceptor_.sent_to, IsEmpty());
  const absl::StatusOr<ParsedReply> reply = admitted_.end->Parse();
  ASSERT_THAT(reply, IsOk());
  EXPECT_EQ(reply->autograd, std::nullopt);
}

TEST_F(ReplySenderTest, InterceptorMaySkipOrFailTheReply) {
  Record();
  replies_.Send(call(), "", {});
  ASSERT_THAT(admitted_.end->Parse(), IsOk());
  EXPECT_EQ(admitted_.end->Parse()->autograd, std::nullopt);
  admitted_ = Admit(RequestFromPeer(2));
  Record();
  interceptor_.on_send = absl::AbortedError("the context was deleted");
  replies_.Send(call(), "", {});
  EXPECT_THAT(error(), StatusIs(absl::StatusCode::kAborted,
                                "worker 'w0': the context was deleted"));
}

// A record of a message that is not sent would make the backward pass wait.
TEST_F(ReplySenderTest, ReplyThatCannotBeSentIsNotRecorded) {
  Record();
  replies_.Send(call(), "", {Tensor()});
  EXPECT_THAT(error(), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(interceptor_.sent_to, IsEmpty());
}

}  // namespace
}  // namespace hawser::rpc
