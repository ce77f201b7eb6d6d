#include "rpc/testing/fakes/fake_service_host.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/future.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/functions/function.h"
#include "rpc/testing/echo_service.h"
#include "rpc/testing/method_test_service.pb.h"
#include "rpc/wire/wire_traits.h"
#include "tensor/tensor.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::hawser::rpc_test::EchoReply;
using ::hawser::rpc_test::EchoRequest;

class FakeServiceHostTest : public testing::Test {
 protected:
  FakeServiceHostTest() {
    host_.AddWorker(peer_);
    host_.AddService(&service_);
  }

  const WorkerInfo peer_ = FakeServiceHost::MakeWorker(1);
  FakeServiceHost host_;
  std::vector<std::string> events_;
  EchoService service_{&events_};
};

TEST_F(FakeServiceHostTest, ReceivedCallRunsTheHandler) {
  ASSERT_THAT(service_.Start(host_), IsOk());
  const async::Result<Message<EchoReply>> reply =
      host_
          .Receive(EchoService::kRead, peer_, MakeEchoRequest("hi"),
                   {tensor::Tensor::Arange(3)})
          .Wait();
  ASSERT_THAT(reply, IsOk());
  EXPECT_EQ(reply->body.text(), "w1: hi");
  EXPECT_EQ(reply->tensors.size(), 1u);
  EXPECT_THAT(
      host_.Receive(EchoService::kRead, peer_, MakeEchoRequest("fail")).Wait(),
      StatusIs(absl::StatusCode::kDataLoss));
}

TEST_F(FakeServiceHostTest, MethodsMustBeRegisteredOnce) {
  EXPECT_THAT(
      host_.Receive(EchoService::kRead, peer_, MakeEchoRequest("hi")).Wait(),
      StatusIs(absl::StatusCode::kUnimplemented));
  EXPECT_FALSE(host_.OptionsOf(EchoService::kRead).has_value());
  ASSERT_THAT(service_.Start(host_), IsOk());
  EXPECT_EQ(host_.OptionsOf(EchoService::kRead)->run_on.kind(),
            RunOn::Kind::kPool);
  EXPECT_THAT(service_.Start(host_),
              StatusIs(absl::StatusCode::kAlreadyExists));
}

TEST_F(FakeServiceHostTest, CallWaitsForTheReplyOfTheTest) {
  async::Future<Message<EchoReply>> future =
      host_.CallMethod(peer_, EchoService::kRead, MakeEchoRequest("hi"), {},
                       {.timeout = absl::Seconds(7)});
  EXPECT_FALSE(host_.TakeCall(EchoService::kOnce).has_value());
  auto call = host_.TakeCall(EchoService::kRead);
  ASSERT_TRUE(call.has_value());
  EXPECT_EQ(host_.num_calls(), 0u);
  EXPECT_EQ(call->request.body.text(), "hi");
  EXPECT_EQ(call->options.timeout, absl::Seconds(7));
  EXPECT_FALSE(future.ready());
  Message<EchoReply> reply;
  reply.body.set_text("there");
  call->SetReply(reply);
  EXPECT_EQ(future.Wait()->body.text(), "there");
}

TEST_F(FakeServiceHostTest, WorkersAreThoseThatTheTestNames) {
  EXPECT_THAT(host_.FindWorker("w1"), IsOk());
  EXPECT_EQ(host_.FindWorker(WorkerId(1))->incarnation, peer_.incarnation);
  EXPECT_THAT(host_.FindWorker(FakeServiceHost::MakeWorker(2)),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_FALSE(host_.IsLost(peer_));
  host_.LoseWorker(peer_);
  EXPECT_TRUE(host_.IsLost(peer_));
  EXPECT_EQ(host_.service<EchoService>(), &service_);
}

TEST_F(FakeServiceHostTest, FunctionsRunInTheCallingThread) {
  constexpr Function<int64_t()> kSeven{"fake.Seven"};
  ASSERT_THAT(host_.registry().Register(kSeven, [] { return int64_t{7}; }),
              IsOk());
  const absl::StatusOr<const RegisteredFunction*> function =
      host_.FindFunction({}, kSeven.name(), kSeven.Signature());
  ASSERT_THAT(function, IsOk());
  Decoder arguments(nullptr, &peer_, "", {});
  const async::Result<ErasedValue> value =
      host_.Invoke(**function, arguments).Wait();
  ASSERT_THAT(value, IsOk());
  EXPECT_EQ(*static_cast<const int64_t*>(value->value.get()), 7);
}

}  // namespace
}  // namespace hawser::rpc
