#include "rpc/agent/inbound/function_endpoint.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/future.h"
#include "async/testing/status_matchers.h"
#include "async/thread_pool.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/agent/inbound/caller_permission.h"
#include "rpc/agent/inbound/function_runner.h"
#include "rpc/agent/inbound/inbound_call.h"
#include "rpc/agent/inbound/reply_sender.h"
#include "rpc/functions/function.h"
#include "rpc/functions/function_registry.h"
#include "rpc/functions/method_definition.h"
#include "rpc/functions/run_on.h"
#include "rpc/identity/worker_info.h"
#include "rpc/peers/call_quota.h"
#include "rpc/testing/fakes/fake_incoming_call.h"
#include "rpc/testing/fakes/fake_service_host.h"
#include "rpc/testing/fakes/inbound_test_fixture.h"
#include "rpc/transport/cancellation.h"
#include "rpc/wire/call_body.h"
#include "rpc/wire/decoder.h"
#include "rpc/wire/encoder.h"
#include "rpc/wire/wire_traits.h"

namespace hawser::rpc {

// A number that may be used once `ready` is complete.
struct LateNumber {
  static inline async::Promise<void> ready;

  int64_t number = 0;
};

template <>
struct WireTraits<LateNumber> {
  static std::string TypeName() { return "test.LateNumber"; }
  static absl::Status Encode(Encoder& encoder, const LateNumber& value) {
    encoder.WriteInt(value.number);
    return absl::OkStatus();
  }
  static absl::StatusOr<LateNumber> Decode(Decoder& decoder) {
    absl::StatusOr<int64_t> number = decoder.ReadInt();
    if (!number.ok()) return number.status();
    decoder.AddPrerequisite(LateNumber::ready.future());
    return LateNumber{*number};
  }
};

namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr Function<int64_t(int64_t)> kAddOne{"test.AddOne"};
constexpr Function<int64_t(int64_t)> kWait{"test.Wait"};
constexpr Function<int64_t(LateNumber)> kUse{"test.Use"};
constexpr Function<int64_t(int64_t)> kForTrainers{"test.ForTrainers"};

class FunctionEndpointTest : public InboundTestFixture {
 protected:
  void SetUp() override {
    ASSERT_THAT(registry_.Register(kAddOne, [](int64_t n) { return n + 1; },
                                   {.run_on = RunOn::Queue("a")}),
                IsOk());
    ASSERT_THAT(registry_.Register(kWait,
                                   [this](int64_t n) {
                                     return result_.future().Then(
                                         [n](absl::StatusOr<int64_t> more) {
                                           return n + more.value_or(0);
                                         });
                                   }),
                IsOk());
    ASSERT_THAT(
        registry_.Register(kUse, [](LateNumber late) { return late.number; }),
        IsOk());
    ASSERT_THAT(registry_.Register(kForTrainers, [](int64_t n) { return n; },
                                   {.allowed_roles = {"trainer"}}),
                IsOk());
    LateNumber::ready = async::Promise<void>();
  }

  FakeRequest RequestOf(std::string_view name, std::string_view signature,
                        int64_t argument, uint64_t call_id = 1) const {
    Encoder encoder;
    encoder.WriteInt(argument);
    FakeRequest request = RequestFromPeer(call_id);
    request.body = EncodeCallBody({.function = name,
                                   .signature = signature,
                                   .arguments = encoder.TakeValues()});
    return request;
  }
  template <class Signature>
  FakeRequest RequestOf(const Function<Signature>& function,
                        uint64_t call_id = 1) const {
    return RequestOf(function.name(), function.Signature(), 41, call_id);
  }

  // Admits a call of `function` that passes Check.
  template <class Signature>
  Admitted Checked(const Function<Signature>& function) {
    Admitted admitted = Admit(RequestOf(function));
    EXPECT_THAT(endpoint_.Check(*admitted.call), IsOk());
    return admitted;
  }

  // The number in the reply.
  static absl::StatusOr<int64_t> NumberIn(const End& end) {
    const auto reply = end.Parse();
    if (!reply.ok()) return reply.status();
    const absl::StatusOr<std::string_view> values =
        ParseCallResults(reply->body);
    if (!values.ok()) return values.status();
    return Decoder(nullptr, nullptr, *values, {}).ReadInt();
  }

  const MethodDefinition definition_{.name = "test.Service.Call", .path = ""};
  async::Promise<int64_t> result_;
  FunctionRegistry registry_;
  CallQuota quota_{CallLimits{}};
  CallerPermission permission_{state_};
  ReplySender replies_{state_};
  FunctionRunner runner_{state_};
  const FunctionEndpoint endpoint_{{.state = state_,
                                    .definition = &definition_,
                                    .registry = &registry_,
                                    .quota = &quota_,
                                    .permission = &permission_,
                                    .replies = &replies_,
                                    .runner = &runner_}};
};

TEST_F(FunctionEndpointTest, CheckFindsTheFunctionAndItsArguments) {
  const Admitted admitted = Checked(kAddOne);
  ASSERT_NE(admitted.call->function, nullptr);
  EXPECT_EQ(admitted.call->function->name(), "test.AddOne");
  Decoder decoder(nullptr, nullptr, admitted.call->arguments, {});
  EXPECT_THAT(decoder.ReadInt(), IsOkAndHolds(41));
  EXPECT_EQ(endpoint_.run_on(*admitted.call).queue(), "a");
  EXPECT_EQ(endpoint_.quota(), &quota_);
  EXPECT_TRUE(endpoint_.hot());
}

TEST_F(FunctionEndpointTest, CheckRejectsOtherFunctionsAndSignatures) {
  const Admitted unknown = Admit(RequestOf("test.Unknown", "void()", 1));
  EXPECT_THAT(
      endpoint_.Check(*unknown.call),
      StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("test.Unknown")));
  const Admitted other = Admit(RequestOf("test.AddOne", "void(string)", 1));
  EXPECT_THAT(
      endpoint_.Check(*other.call),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("void(string)")));
}

TEST_F(FunctionEndpointTest, CallerNeedsARoleOfTheFunction) {
  const Admitted admitted = Admit(RequestOf(kForTrainers));
  EXPECT_THAT(endpoint_.Check(*admitted.call),
              StatusIs(absl::StatusCode::kPermissionDenied));
  admitted.call->source.roles = {"trainer"};
  EXPECT_THAT(endpoint_.Check(*admitted.call), IsOk());
}

TEST_F(FunctionEndpointTest, CancelledCallDoesNotRun) {
  const auto cancellation = std::make_shared<Cancellation>();
  const Admitted admitted = Admit(RequestOf(kAddOne), /*quota=*/nullptr,
                                  {.cancellation = cancellation});
  EXPECT_THAT(endpoint_.CheckBeforeRun(*admitted.call), IsOk());
  cancellation->Cancel();
  EXPECT_THAT(endpoint_.CheckBeforeRun(*admitted.call),
              StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(FunctionEndpointTest, CallDoesNotRunOnTheLastThreadOfThePool) {
  const Admitted admitted = Checked(kAddOne);
  EXPECT_TRUE(endpoint_.MayRunInline(*admitted.call));
  async::ThreadPool pool({.num_threads = 1, .max_threads = 2});
  async::Promise<void> promise;
  const async::Future<void> done = promise.future();
  pool.Post([&] {
    // The other thread runs while this one waits.
    pool.Post([&] {
      EXPECT_FALSE(endpoint_.MayRunInline(*admitted.call));
      EXPECT_THAT(endpoint_.CheckBeforeRun(*admitted.call),
                  StatusIs(absl::StatusCode::kResourceExhausted));
      promise.Set(absl::OkStatus());
    });
    (void)done.Wait();
  });
  EXPECT_THAT(done.Wait(), IsOk());
  pool.Shutdown();
}

TEST_F(FunctionEndpointTest, ResultIsReplied) {
  const Admitted admitted = Checked(kAddOne);
  endpoint_.Run(admitted.call, {});
  EXPECT_THAT(NumberIn(*admitted.end), IsOkAndHolds(42));
  EXPECT_EQ(state_->async_inbound_calls().load(), 0);
}

TEST_F(FunctionEndpointTest, ErrorOfTheArgumentsNamesTheFunction) {
  FakeRequest request = RequestOf(kAddOne);
  request.body = EncodeCallBody({.function = kAddOne.name(),
                                 .signature = kAddOne.Signature(),
                                 .arguments = ""});
  const Admitted admitted = Admit(std::move(request));
  ASSERT_THAT(endpoint_.Check(*admitted.call), IsOk());
  endpoint_.Run(admitted.call, {});
  EXPECT_THAT(
      admitted.end->reply,
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("worker 'w0'"),
                     HasSubstr("arguments of function 'test.AddOne': "))));
}

TEST_F(FunctionEndpointTest, FunctionThatReturnsAFutureHoldsNoThread) {
  Admitted admitted = Checked(kWait);
  endpoint_.Run(admitted.call, {});
  EXPECT_EQ(admitted.end->kind, Kind::kPending);
  EXPECT_EQ(state_->async_inbound_calls().load(), 1);
  result_.Set(2);
  EXPECT_THAT(NumberIn(*admitted.end), IsOkAndHolds(43));
  admitted.call = nullptr;
  EXPECT_EQ(state_->async_inbound_calls().load(), 0);
  EXPECT_EQ(state_->inbound_calls().value(), 0);
}

TEST_F(FunctionEndpointTest, BytesOfTheRequestAreReleasedWhenItRuns) {
  const FakeRequest request = RequestOf(kWait);
  const size_t bytes = Encode(request)->size();
  CallQuota quota(
      {.max_calls_per_peer = 2, .max_request_bytes_per_peer = bytes});
  const Admitted first = Admit(request, &quota);
  EXPECT_THAT(quota.Admit(peer_.name, bytes),
              StatusIs(absl::StatusCode::kResourceExhausted));
  ASSERT_THAT(endpoint_.Check(*first.call), IsOk());
  endpoint_.Run(first.call, {});
  EXPECT_FALSE(first.call->message.has_value());
  EXPECT_EQ(first.end->kind, Kind::kPending);
  const auto second = quota.Admit(peer_.name, bytes);
  EXPECT_THAT(second, IsOk());
  // The call itself still counts.
  EXPECT_THAT(quota.Admit(peer_.name, 0),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("max_calls_per_peer")));
}

TEST_F(FunctionEndpointTest, FunctionRunsOnItsExecutorOnceItsArgumentsMay) {
  const Admitted admitted = Checked(kUse);
  endpoint_.Run(admitted.call, {});
  executor_.RunAll();
  EXPECT_EQ(admitted.end->kind, Kind::kPending);
  LateNumber::ready.Set(absl::OkStatus());
  EXPECT_EQ(admitted.end->kind, Kind::kPending);
  executor_.RunAll();
  EXPECT_THAT(NumberIn(*admitted.end), IsOkAndHolds(41));
}

TEST_F(FunctionEndpointTest, CallCancelledWhileItsArgumentsWaitDoesNotRun) {
  const auto cancellation = std::make_shared<Cancellation>();
  const Admitted admitted =
      Admit(RequestOf(kUse), /*quota=*/nullptr, {.cancellation = cancellation});
  ASSERT_THAT(endpoint_.Check(*admitted.call), IsOk());
  endpoint_.Run(admitted.call, {});
  cancellation->Cancel();
  LateNumber::ready.Set(absl::OkStatus());
  executor_.RunAll();
  EXPECT_THAT(admitted.end->reply, StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(FunctionEndpointTest, ErrorOfAnArgumentIsReplied) {
  const Admitted admitted = Checked(kUse);
  endpoint_.Run(admitted.call, {});
  LateNumber::ready.Set(absl::AbortedError("the owner is lost"));
  EXPECT_THAT(admitted.end->reply, StatusIs(absl::StatusCode::kAborted,
                                            "worker 'w0': the owner is lost"));
}

TEST_F(FunctionEndpointTest, StoppedAgentDropsTheResult) {
  Admitted admitted = Checked(kWait);
  endpoint_.Run(admitted.call, {});
  admitted.call = nullptr;
  state_->gate().Close();
  result_.Set(2);
  EXPECT_EQ(admitted.end->kind, Kind::kDropped);
  EXPECT_EQ(state_->async_inbound_calls().load(), 0);
}

}  // namespace
}  // namespace hawser::rpc
