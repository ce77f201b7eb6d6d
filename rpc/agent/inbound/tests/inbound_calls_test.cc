#include "rpc/agent/inbound/inbound_calls.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/future.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/functions/erased_value.h"
#include "rpc/functions/function.h"
#include "rpc/functions/function_registry.h"
#include "rpc/functions/method.h"
#include "rpc/functions/method_definition.h"
#include "rpc/functions/run_on.h"
#include "rpc/identity/worker_info.h"
#include "rpc/peers/call_quota.h"
#include "rpc/testing/fakes/fake_incoming_call.h"
#include "rpc/testing/fakes/fake_service_host.h"
#include "rpc/testing/fakes/inbound_test_fixture.h"
#include "rpc/testing/method_test_service.pb.h"
#include "rpc/transport/transport.h"
#include "rpc/wire/call_body.h"
#include "rpc/wire/decoder.h"
#include "rpc/wire/encoder.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kCallPath[] = "/hawser.v1.WorkerService/Call";
constexpr char kOncePath[] = "/hawser.rpc_test.EchoService/Once";
constexpr MethodName kOnce{"hawser.rpc_test.EchoService.Once"};
constexpr MethodName kRead{"hawser.rpc_test.EchoService.Read"};
constexpr MethodName kUndeclared{"hawser.rpc_test.EchoService.Undeclared"};
constexpr Function<int64_t(int64_t)> kAddOne{"test.AddOne"};
constexpr Function<void()> kForTrainers{"test.ForTrainers"};

// Replies with the request.
async::Future<RawMessage> Echo(const MethodCall&, RawMessage request) {
  return async::MakeReadyFuture<RawMessage>(std::move(request));
}

class InboundCallsTest : public InboundTestFixture {
 protected:
  void SetUp() override {
    // Links the generated code, and with it the definitions.
    ASSERT_NE(rpc_test::EchoRequest::descriptor(), nullptr);
    ASSERT_THAT(registry_.Register(kAddOne, [](int64_t n) { return n + 1; }),
                IsOk());
    ASSERT_THAT(
        registry_.Register(kForTrainers, [] {}, {.allowed_roles = {"trainer"}}),
        IsOk());
  }

  std::unique_ptr<InboundCalls> MakeCalls(CallLimits limits = {}) {
    return std::make_unique<InboundCalls>(
        InboundCalls::Options{.state = state_,
                              .senders = &senders_,
                              .registry = &registry_,
                              .limits = limits});
  }

  // Serves a call of `path`.
  std::shared_ptr<const End> Call(const std::vector<TransportMethod>& methods,
                                  std::string_view path, FakeRequest request) {
    std::shared_ptr<const End> end;
    auto incoming = Incoming(std::move(request), end);
    for (const TransportMethod& method : methods) {
      if (method.path == path) method.handler(std::move(incoming));
    }
    EXPECT_EQ(incoming, nullptr) << path;
    return end;
  }

  FakeRequest CallOfAddOne(uint64_t call_id) const {
    Encoder encoder;
    encoder.WriteInt(41);
    FakeRequest request = RequestFromPeer(call_id);
    request.body = EncodeCallBody({.function = kAddOne.name(),
                                   .signature = kAddOne.Signature(),
                                   .arguments = encoder.TakeValues()});
    return request;
  }

  // A call of peer_ in which a service looks for functions.
  MethodCall CallFrom(const WorkerInfo& peer) const {
    return {.peer = peer, .cancellation = nullptr};
  }

  FunctionRegistry registry_;
  const std::unique_ptr<InboundCalls> calls_ = MakeCalls();
};

TEST_F(InboundCallsTest, MethodsAreTheRegisteredOnesAndThatOfFunctions) {
  ASSERT_THAT(calls_->Register(kRead, Echo, {}), IsOk());
  ASSERT_THAT(calls_->Register(kOnce, Echo, {}), IsOk());
  const auto methods = calls_->Methods();
  ASSERT_THAT(methods, IsOk());
  std::vector<std::string> paths;
  for (const TransportMethod& method : *methods) {
    paths.push_back(method.path);
    EXPECT_EQ(method.hot, method.path == kCallPath) << method.path;
  }
  EXPECT_THAT(paths, ElementsAre(kCallPath, kOncePath,
                                 "/hawser.rpc_test.EchoService/Read"));
}

TEST_F(InboundCallsTest, MethodsAreRegisteredOnceWithADeliveryClass) {
  EXPECT_THAT(calls_->Register(kUndeclared, Echo, {}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(calls_->Register(kRead, Echo, {}), IsOk());
  EXPECT_THAT(calls_->Register(kRead, Echo, {}),
              StatusIs(absl::StatusCode::kAlreadyExists));
}

TEST_F(InboundCallsTest, RegisterAfterMethodsFails) {
  ASSERT_THAT(calls_->Methods(), IsOk());
  EXPECT_THAT(calls_->Register(kRead, Echo, {}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("EchoService.Read")));
}

TEST_F(InboundCallsTest, CallsReachTheirHandlers) {
  ASSERT_THAT(calls_->Register(kOnce, Echo, {.run_on = RunOn::Inline()}),
              IsOk());
  const auto methods = calls_->Methods();
  ASSERT_THAT(methods, IsOk());
  FakeRequest request = RequestFromPeer(1);
  request.body = "\x0a\x02hi";
  const auto echoed = Call(*methods, kOncePath, request)->Parse();
  ASSERT_THAT(echoed, IsOk());
  EXPECT_EQ(echoed->body, "\x0a\x02hi");
  const auto called = Call(*methods, kCallPath, CallOfAddOne(2));
  executor_.RunAll();
  const auto result = called->Parse();
  ASSERT_THAT(result, IsOk());
  Decoder decoder(nullptr, nullptr, ParseCallResults(result->body).value(), {});
  EXPECT_THAT(decoder.ReadInt(), IsOkAndHolds(42));
}

// The numbers of calls are those of their sender, whatever it calls.
TEST_F(InboundCallsTest, DuplicatesAreFilteredUntilTheSenderIsForgotten) {
  const auto methods = calls_->Methods();
  ASSERT_THAT(methods, IsOk());
  (void)Call(*methods, kCallPath, CallOfAddOne(1));
  EXPECT_EQ(Call(*methods, kCallPath, CallOfAddOne(1))->kind, Kind::kDiscarded);
  EXPECT_EQ(calls_->num_remembered_senders(), 1u);
  calls_->Forget(peer_.incarnation);
  EXPECT_EQ(calls_->num_remembered_senders(), 0u);
  EXPECT_EQ(Call(*methods, kCallPath, CallOfAddOne(1))->kind, Kind::kPending);
}

TEST_F(InboundCallsTest, FunctionsAndMethodsHaveSeparateQuotas) {
  const auto calls = MakeCalls({.max_calls_per_peer = 1});
  ASSERT_THAT(calls->Register(kOnce, Echo, {}), IsOk());
  const auto methods = calls->Methods();
  ASSERT_THAT(methods, IsOk());
  const auto function = Call(*methods, kCallPath, CallOfAddOne(1));
  const auto method = Call(*methods, kOncePath, RequestFromPeer(2));
  EXPECT_EQ(function->kind, Kind::kPending);
  EXPECT_EQ(method->kind, Kind::kPending);
  EXPECT_THAT(Call(*methods, kCallPath, CallOfAddOne(3))->reply,
              StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(Call(*methods, kOncePath, RequestFromPeer(4))->reply,
              StatusIs(absl::StatusCode::kResourceExhausted));
  executor_.RunAll();
  EXPECT_EQ(function->kind, Kind::kReplied);
  EXPECT_EQ(method->kind, Kind::kReplied);
}

TEST_F(InboundCallsTest, FindFunctionChecksTheCaller) {
  const auto found = calls_->FindFunction(CallFrom(peer_), kAddOne.name(),
                                          kAddOne.Signature());
  ASSERT_THAT(found, IsOk());
  EXPECT_EQ((*found)->name(), "test.AddOne");
  EXPECT_THAT(calls_->FindFunction(CallFrom(peer_), "test.Unknown", "void()"),
              StatusIs(absl::StatusCode::kUnimplemented));
  EXPECT_THAT(calls_->FindFunction(CallFrom(peer_), kForTrainers.name(),
                                   kForTrainers.Signature()),
              StatusIs(absl::StatusCode::kPermissionDenied));
}

TEST_F(InboundCallsTest, InvokeRunsAFunctionOnItsExecutor) {
  const auto function = registry_.Find(kAddOne.name(), kAddOne.Signature());
  ASSERT_THAT(function, IsOk());
  Encoder encoder;
  encoder.WriteInt(41);
  const std::string values = encoder.TakeValues();
  Decoder decoder(nullptr, nullptr, values, {});
  const async::Future<ErasedValue> result = calls_->Invoke(**function, decoder);
  EXPECT_FALSE(result.ready());
  executor_.RunAll();
  ASSERT_TRUE(result.ready());
  ASSERT_THAT(result.result(), IsOk());
  EXPECT_EQ(*static_cast<const int64_t*>(result.result()->value.get()), 42);
}

}  // namespace
}  // namespace hawser::rpc
