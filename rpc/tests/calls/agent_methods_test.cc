#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/agent/agent.h"
#include "rpc/agent/service_host.h"
#include "rpc/errors/error_detail.h"
#include "rpc/functions/service_method.h"
#include "rpc/testing/agent_test_fixture.h"
#include "rpc/testing/echo_service.h"
#include "rpc/testing/method_test_service.pb.h"
#include "rpc/testing/transport_test_param.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::hawser::rpc_test::EchoReply;
using ::hawser::rpc_test::EchoRequest;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class AgentMethodsTest : public testing::TestWithParam<TransportParam> {
 protected:
  AgentMethodsTest() : job_(MakeTransportFactory(GetParam())) {}

  void Start(const LivenessOptions& liveness = {
                 .silent_limit = absl::Seconds(20)}) {
    job_.StartAll(2, [&](int rank, AgentOptions& options) {
      options.liveness = liveness;
      options.services.push_back(std::make_unique<EchoService>(&events_[rank]));
    });
  }

  std::vector<std::vector<std::string>> events_{2};
  TestJob job_;
};

TEST_P(AgentMethodsTest, MessagesAndTensorsTravel) {
  Start();
  absl::StatusOr<Message<EchoReply>> reply =
      job_.agent(0)
          .host()
          .CallMethod("w1", EchoService::kRead, MakeEchoRequest("hi"),
                      {Tensor::Arange(1000)})
          .Wait();
  ASSERT_THAT(reply, IsOk());
  EXPECT_EQ(reply->body.text(), "w0: hi");
  EXPECT_EQ(reply->body.tensors_size(), 0);
  ASSERT_EQ(reply->tensors.size(), 1u);
  EXPECT_EQ(reply->tensors[0].num_elements(), 1000);
}

TEST_P(AgentMethodsTest, HandlersErrorReachesTheCaller) {
  Start();
  const absl::Status status =
      job_.agent(0)
          .host()
          .CallMethod("w1", EchoService::kOnce, MakeEchoRequest("fail"))
          .Wait()
          .status();
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("failed")));
  EXPECT_EQ(GetErrorDetail(status)->worker, "w1");
}

TEST_P(AgentMethodsTest, MethodsNeedADeliveryClassAndADefinition) {
  static constexpr EchoService::Method kUndeclared{
      "hawser.rpc_test.EchoService.Undeclared"};
  static constexpr EchoService::Method kUnknown{"a.B.C"};
  Start();
  EXPECT_THAT(
      job_.agent(0).host().CallMethod("w1", kUndeclared, EchoRequest()).Wait(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("delivery class")));
  EXPECT_THAT(
      job_.agent(0).host().CallMethod("w1", kUnknown, EchoRequest()).Wait(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("a.B.C")));
}

TEST_P(AgentMethodsTest, MethodsAreRegisteredBeforeTheAgentServes) {
  Start();
  EXPECT_THAT(job_.agent(0).host().RegisterMethod(
                  EchoService::kRead,
                  [](const MethodCall&, const Message<EchoRequest>&) {
                    return async::Future<Message<EchoReply>>();
                  }),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_P(AgentMethodsTest, ServicesLiveThroughTheirSteps) {
  // Who hears, while it leaves, that the other has left counts it as lost.
  Start({.heartbeat_interval = absl::Minutes(10),
         .silent_limit = absl::Minutes(30)});
  EXPECT_NE(job_.agent(0).service<EchoService>(), nullptr);
  EXPECT_THAT(job_.ShutdownAll(), ElementsAre(IsOk(), IsOk()));
  EXPECT_THAT(events_[0], ElementsAre("start", "drain", "stop"));
  EXPECT_THAT(events_[1], ElementsAre("start", "drain", "stop"));
}

TEST_P(AgentMethodsTest, DeadPeerIsReportedToServicesAndFailsCallsAtOnce) {
  Start();
  ASSERT_THAT(job_.agent(0)
                  .host()
                  .CallMethod("w1", EchoService::kRead, EchoRequest())
                  .Wait(),
              IsOk());
  const WorkerInfo gone = job_.agent(1).info();
  ASSERT_THAT(job_.agent(1).Shutdown(/*graceful=*/false), IsOk());
  // Tried again until the peer is found lost, long before the deadline.
  const absl::Status status =
      job_.agent(0)
          .host()
          .CallMethod("w1", EchoService::kRead, EchoRequest(), {},
                      {.timeout = absl::Seconds(1000)})
          .Wait()
          .status();
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("'w1'")));
  EXPECT_TRUE(job_.agent(0).IsLost(gone));
  EXPECT_THAT(job_.agent(0).Shutdown(/*graceful=*/false), IsOk());
  EXPECT_THAT(events_[0], ElementsAre("start", "lost w1", "stop"));
}

INSTANTIATE_TEST_SUITE_P(Transports, AgentMethodsTest,
                         testing::ValuesIn(kTransportParams),
                         TransportParamName());

}  // namespace
}  // namespace hawser::rpc
