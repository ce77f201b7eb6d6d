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
#include "rpc/agent/service_host.h"
#include "rpc/functions/function.h"
#include "rpc/functions/service_method.h"
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

constexpr ServiceMethod<EchoRequest, EchoReply> kRead{
    "hawser.rpc_test.EchoService.Read"};
constexpr ServiceMethod<EchoRequest, EchoReply> kOnce{
    "hawser.rpc_test.EchoService.Once"};
constexpr Function<void()> kStep{"test.Step"};

// Notes which requests have come, and answers all but "hold".
class InlineService final : public Service {
 public:
  explicit InlineService(std::atomic<bool>* busy) : pool_is_busy_(*busy) {}

  std::string_view name() const override { return "inline"; }
  absl::Status Start(ServiceHost& host) override {
    return host.RegisterMethod(
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
        {.run_on = RunOn::Inline()});
  }
  void Release() { held_.Set(Message<EchoReply>()); }

  std::atomic<int> num_beside_the_pool = 0;
  // "hold" has come; once.
  absl::Notification holds;

 private:
  const std::atomic<bool>& pool_is_busy_;
  async::Promise<Message<EchoReply>> held_;
};

// Serves kOnce one call after the other, with the function kStep.
class QueuedService final : public Service {
 public:
  std::string_view name() const override { return "queued"; }
  absl::Status Start(ServiceHost& host) override {
    return host.RegisterMethod(
        kOnce,
        [this](const MethodCall&, const Message<EchoRequest>&) {
          Step();
          return async::MakeReadyFuture<Message<EchoReply>>(
              Message<EchoReply>());
        },
        {.run_on = RunOn::Queue("shard0")});
  }
  void Step() {
    if (inside_.fetch_add(1) != 0) overlapped = true;
    ++num_steps;
    inside_.fetch_sub(1);
  }

  std::atomic<bool> overlapped = false;
  // Guarded by the queue.
  int num_steps = 0;

 private:
  std::atomic<int> inside_ = 0;
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
    return job_.agent(0).host().CallMethod("w1", kRead, request);
  }
  // The callee's pool has one thread, and it does something else.
  void Occupy() {
    absl::Notification occupied;
    job_.agent(1).host().executor().Post([&] {
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

TEST_P(MethodExecutorTest, QueuedMethodsAndFunctionsRunOneByOne) {
  QueuedService* service = nullptr;
  ASSERT_THAT(job_.registry().Register(kStep,
                                       [&] {
                                         service->Step();
                                         return absl::OkStatus();
                                       },
                                       {.run_on = RunOn::Queue("shard0")}),
              IsOk());
  job_.StartAll(2, [&](int rank, AgentOptions& options) {
    auto added = std::make_unique<QueuedService>();
    if (rank == 1) service = added.get();
    options.services.push_back(std::move(added));
  });
  std::vector<async::Future<Message<EchoReply>>> methods;
  std::vector<async::Future<void>> functions;
  for (int i = 0; i < 100; ++i) {
    methods.push_back(
        job_.agent(i % 2).host().CallMethod("w1", kOnce, EchoRequest()));
    functions.push_back(job_.agent(i % 2).Async("w1", kStep));
  }
  for (auto& future : methods) EXPECT_THAT(future.Wait(), IsOk());
  for (auto& future : functions) EXPECT_THAT(future.Wait(), IsOk());
  EXPECT_EQ(service->num_steps, 200);
  EXPECT_FALSE(service->overlapped);
}

INSTANTIATE_TEST_SUITE_P(Transports, MethodExecutorTest,
                         testing::ValuesIn(kTransportParams),
                         TransportParamName());

}  // namespace
}  // namespace hawser::rpc
