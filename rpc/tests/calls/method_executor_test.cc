// Where the handlers of methods run.

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "async/future.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/agent/agent.h"
#include "rpc/agent/service.h"
#include "rpc/testing/agent_test_fixture.h"
#include "rpc/testing/method_test_service.pb.h"
#include "rpc/testing/transport_test_param.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::hawser::rpc_test::EchoReply;
using ::hawser::rpc_test::EchoRequest;
using ::testing::HasSubstr;

constexpr char kRead[] = "hawser.rpc_test.EchoService.Read";

// Notes which requests have come, and answers all but "hold".
class InlineService final : public Service {
 public:
  explicit InlineService(std::atomic<bool>* busy) : pool_is_busy_(*busy) {}

  std::string_view name() const override { return "inline"; }
  absl::Status Start(Agent& agent) override {
    return agent.RegisterMethod<EchoRequest, EchoReply>(
        kRead,
        [this](const MethodCall&, Message<EchoRequest> request) {
          if (pool_is_busy_) ++num_beside_the_pool;
          if (request.body.text() == "hold") {
            holds.Notify();
            return held_.future();
          }
          return async::MakeReadyFuture<Message<EchoReply>>(
              Message<EchoReply>());
        },
        {.executor = MethodExecutor::kInline});
  }
  void Release() { held_.Set(Message<EchoReply>()); }

  std::atomic<int> num_beside_the_pool = 0;
  // "hold" has come; once.
  absl::Notification holds;

 private:
  const std::atomic<bool>& pool_is_busy_;
  async::Promise<Message<EchoReply>> held_;
};

class MethodExecutorTest : public testing::TestWithParam<TransportParam> {
 protected:
  MethodExecutorTest() : job_(MakeTransportFactory(GetParam())) {}
  ~MethodExecutorTest() override { Free(); }

  void Start(CallLimits limits = {}) {
    job_.StartAll(2, [&](int rank, AgentOptions& options) {
      options.limits = limits;
      options.num_threads = 1;
      auto service = std::make_unique<InlineService>(&pool_is_busy_);
      if (rank == 1) service_ = service.get();
      options.services.push_back(std::move(service));
    });
  }
  async::Future<Message<EchoReply>> Call(const std::string& text) {
    EchoRequest request;
    request.set_text(text);
    return job_.agent(0).CallMethod<EchoReply>("w1", kRead, request);
  }
  // The callee's pool has one thread, and it does something else.
  void Occupy() {
    absl::Notification occupied;
    job_.agent(1).executor().Post([&] {
      occupied.Notify();
      freed_.WaitForNotification();
    });
    occupied.WaitForNotification();
    pool_is_busy_ = true;
  }
  void Free() {
    pool_is_busy_ = false;
    if (!freed_.HasBeenNotified()) freed_.Notify();
  }

  std::atomic<bool> pool_is_busy_ = false;
  absl::Notification freed_;
  InlineService* service_ = nullptr;
  TestJob job_;
};

TEST_P(MethodExecutorTest, InlineMethodsNeedNoThreadOfThePool) {
  Start();
  Occupy();
  EXPECT_THAT(Call("small").Wait(), IsOk());
  EXPECT_EQ(service_->num_beside_the_pool, 1);
}

TEST_P(MethodExecutorTest, LongRequestsDoNotHoldUpTheTransport) {
  Start();
  Occupy();
  const auto large = Call(std::string(size_t{1} << 20, 'x'));
  // What comes after it is not kept waiting.
  EXPECT_THAT(Call("small").Wait(), IsOk());
  EXPECT_FALSE(large.ready());
  EXPECT_EQ(service_->num_beside_the_pool, 1);
  Free();
  EXPECT_THAT(large.Wait(), IsOk());
}

TEST_P(MethodExecutorTest, InlineMethodsCountUntilTheyAreAnswered) {
  Start({.max_calls_per_peer = 1});
  const auto held = Call("hold");
  service_->holds.WaitForNotification();
  EXPECT_THAT(Call("small").Wait(),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("max_calls_per_peer")));
  EXPECT_FALSE(held.ready());
  service_->Release();
  EXPECT_THAT(held.Wait(), IsOk());
}

INSTANTIATE_TEST_SUITE_P(Transports, MethodExecutorTest,
                         testing::ValuesIn(kTransportParams),
                         TransportParamName());

}  // namespace
}  // namespace hawser::rpc
