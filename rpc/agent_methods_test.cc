#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "async/future.h"
#include "async/manual_executor.h"
#include "async/simulated_clock.h"
#include "async/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/agent.h"
#include "rpc/agent_test_fixture.h"
#include "rpc/error_detail.h"
#include "rpc/method_test_service.pb.h"
#include "rpc/transport_test_param.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::hawser::rpc_test::EchoReply;
using ::hawser::rpc_test::EchoRequest;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kRead[] = "hawser.rpc_test.EchoService.Read";
constexpr char kOnce[] = "hawser.rpc_test.EchoService.Once";
constexpr char kReadPath[] = "/hawser.rpc_test.EchoService/Read";
constexpr char kOncePath[] = "/hawser.rpc_test.EchoService/Once";

constexpr Function<void()> kStep{"test.Step"};

// Answers with what it gets, and keeps a record.
class EchoService final : public Service {
 public:
  explicit EchoService(std::vector<std::string>* events) : events_(*events) {}

  std::string_view name() const override { return "echo"; }

  absl::Status Start(Agent& agent) override {
    agent_ = &agent;
    events_.push_back("start");
    for (const char* method : {kRead, kOnce}) {
      absl::Status status = agent.RegisterMethod<EchoRequest, EchoReply>(
          method, [this](const MethodCall& call, Message<EchoRequest> request) {
            return Answer(call, std::move(request));
          });
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  async::Future<void> Drain(async::MonotonicTime) override {
    events_.push_back("drain");
    // All workers still serve.
    return agent_->CallMethod<EchoReply>(WorkerId(0), kRead, EchoRequest())
        .Then([](absl::StatusOr<Message<EchoReply>> reply) {
          return reply.status();
        });
  }
  void OnWorkerLost(const WorkerInfo& worker, const absl::Status&) override {
    events_.push_back("lost " + worker.name);
  }
  void Stop() override { events_.push_back("stop"); }

  std::atomic<int> num_calls{0};

 private:
  async::Future<Message<EchoReply>> Answer(const MethodCall& call,
                                           Message<EchoRequest> request) {
    ++num_calls;
    Message<EchoReply> reply;
    if (request.body.text() == "fail") {
      return async::MakeReadyFuture<Message<EchoReply>>(
          absl::DataLossError("failed"));
    }
    reply.body.set_text(call.peer.name + ": " + request.body.text());
    reply.tensors = std::move(request.tensors);
    return async::MakeReadyFuture<Message<EchoReply>>(std::move(reply));
  }

  Agent* agent_ = nullptr;
  std::vector<std::string>& events_;
};

EchoRequest Request(const std::string& text) {
  EchoRequest request;
  request.set_text(text);
  return request;
}

class AgentMethodsTest : public testing::TestWithParam<TransportParam> {
 protected:
  AgentMethodsTest() : events_(2), job_(MakeTransportFactory(GetParam())) {}

  void Start() {
    job_.StartAll(2, [this](int rank, AgentOptions& options) {
      options.services.push_back(std::make_unique<EchoService>(&events_[rank]));
    });
  }

  std::vector<std::vector<std::string>> events_;
  TestJob job_;
};

TEST_P(AgentMethodsTest, MessagesAndTensorsTravel) {
  Start();
  absl::StatusOr<Message<EchoReply>> reply =
      job_.agent(0)
          .CallMethod<EchoReply>("w1", kRead, Request("hi"),
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
          .CallMethod<EchoReply>("w1", kOnce, Request("fail"))
          .Wait()
          .status();
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("failed")));
  EXPECT_EQ(GetErrorDetail(status)->worker, "w1");
}

TEST_P(AgentMethodsTest, MethodsNeedADeliveryClassAndADefinition) {
  Start();
  EXPECT_THAT(
      job_.agent(0)
          .CallMethod<EchoReply>("w1", "hawser.rpc_test.EchoService.Undeclared",
                                 EchoRequest())
          .Wait(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("delivery class")));
  EXPECT_THAT(
      job_.agent(0).CallMethod<EchoReply>("w1", "a.B.C", EchoRequest()).Wait(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("a.B.C")));
}

TEST_P(AgentMethodsTest, MethodsAreRegisteredBeforeTheAgentServes) {
  Start();
  EXPECT_THAT(job_.agent(0).RegisterRawMethod(kRead, nullptr),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_P(AgentMethodsTest, ServicesLiveThroughTheirSteps) {
  Start();
  EXPECT_NE(job_.agent(0).service<EchoService>(), nullptr);
  EXPECT_THAT(job_.ShutdownAll(), ElementsAre(IsOk(), IsOk()));
  EXPECT_THAT(events_[0], ElementsAre("start", "drain", "stop"));
  EXPECT_THAT(events_[1], ElementsAre("start", "drain", "stop"));
}

TEST_P(AgentMethodsTest, DeadPeerIsReportedToServicesAndFailsCallsAtOnce) {
  Start();
  ASSERT_THAT(
      job_.agent(0).CallMethod<EchoReply>("w1", kRead, EchoRequest()).Wait(),
      IsOk());
  const WorkerInfo gone = job_.agent(1).info();
  ASSERT_THAT(job_.agent(1).Shutdown(/*graceful=*/false), IsOk());
  // Tried again until the peer is found lost, long before the deadline.
  const absl::Status status =
      job_.agent(0)
          .CallMethod<EchoReply>("w1", kRead, EchoRequest(), {},
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

// Two workers driven step by step, over a network with faults.
class SimulatedJobTest : public testing::Test {
 protected:
  SimulatedJobTest() : events_(2) {}

  void Start(uint64_t seed) {
    network_ = std::make_unique<InprocNetwork>(InprocNetworkOptions{
        .seed = seed, .executor = &executor_, .clock = &clock_});
    for (int rank = 0; rank < 2; ++rank) {
      AgentOptions options;
      options.name = "w" + std::to_string(rank);
      options.rank = rank;
      options.store = &store_;
      options.transport = network_->NewTransport();
      options.registry = &registry_;
      options.clock = &clock_;
      options.executor = &executor_;
      auto service = std::make_unique<EchoService>(&events_[rank]);
      services_.push_back(service.get());
      options.services.push_back(std::move(service));
      absl::StatusOr<std::unique_ptr<Agent>> agent =
          Agent::Start(std::move(options));
      ASSERT_THAT(agent, IsOk());
      agents_.push_back(*std::move(agent));
    }
  }

  // Lets time pass until the future is ready.
  template <class T>
  async::Result<T> Run(async::Future<T> future) {
    while (!future.ready()) {
      executor_.RunAll();
      if (future.ready()) break;
      EXPECT_TRUE(clock_.AdvanceToNextTimer());
    }
    return future.result();
  }

  async::Future<Message<EchoReply>> Call(const char* method,
                                         const MethodCallOptions& options) {
    return agents_[0]->CallMethod<EchoReply>("w1", method, Request("x"), {},
                                             options);
  }

  async::ManualExecutor executor_;
  async::SimulatedClock clock_;
  store::HashStore store_;
  FunctionRegistry registry_;
  std::vector<std::vector<std::string>> events_;
  std::unique_ptr<InprocNetwork> network_;
  std::vector<EchoService*> services_;
  std::vector<std::unique_ptr<Agent>> agents_;
};

TEST_F(SimulatedJobTest, ReadsAreTriedAgainUntilTheyArrive) {
  Start(1);
  network_->SetMethodFaults(kReadPath,
                            {.drop_request = 0.5, .drop_reply = 0.5});
  for (int i = 0; i < 50; ++i) {
    EXPECT_THAT(Run(Call(kRead, {.timeout = absl::Minutes(30),
                                 .attempt_timeout = absl::Seconds(1)})),
                IsOk());
  }
  EXPECT_GT(services_[1]->num_calls, 60);
}

TEST_F(SimulatedJobTest, AtMostOnceIsNotTriedAgain) {
  Start(1);
  network_->SetMethodFaults(kOncePath, {.drop_reply = 1});
  const absl::Status status =
      Run(Call(kOnce, {.timeout = absl::Seconds(60),
                       .attempt_timeout = absl::Seconds(1)}))
          .status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_TRUE(GetErrorDetail(status)->maybe_applied);
  EXPECT_EQ(services_[1]->num_calls, 1);
}

TEST_F(SimulatedJobTest, AtMostOnceIsNotRunTwiceForACopy) {
  Start(3);
  network_->SetMethodFaults(
      kOncePath, {.duplicate_request = 1, .max_delay = absl::Milliseconds(50)});
  for (int i = 0; i < 100; ++i) {
    EXPECT_THAT(Run(Call(kOnce, {})), IsOk());
  }
  // The second copies of the last calls may still be under way.
  clock_.AdvanceBy(absl::Seconds(1));
  executor_.RunAll();
  EXPECT_EQ(services_[1]->num_calls, 100);
}

TEST_F(SimulatedJobTest, UserCallsAreNotRunTwiceForACopy) {
  int steps = 0;
  ASSERT_THAT(registry_.Register(kStep, [&] { ++steps; }), IsOk());
  Start(5);
  network_->SetFaults(
      {.duplicate_request = 1, .max_delay = absl::Milliseconds(50)});
  for (int i = 0; i < 100; ++i) {
    EXPECT_THAT(Run(agents_[0]->Async("w1", kStep)), IsOk());
  }
  clock_.AdvanceBy(absl::Seconds(1));
  executor_.RunAll();
  EXPECT_EQ(steps, 100);
}

// It would seem that the call had not run.
TEST_F(SimulatedJobTest, CopyOfACallThatRunsIsNotRefusedByOneThatLeaves) {
  constexpr Function<void()> kHold{"test.Hold"};
  async::Promise<void> held;
  const async::Future<void> hold = held.future();
  bool entered = false;
  ASSERT_THAT(registry_.Register(kHold,
                                 [&] {
                                   entered = true;
                                   return hold;
                                 }),
              IsOk());
  Start(1);
  network_->SetMethodFaults(
      "/hawser.v1.WorkerService/Call",
      {.duplicate_request = 1, .max_delay = absl::Seconds(1)});
  async::Future<void> call =
      agents_[0]->Async("w1", {.timeout = kNoTimeout}, kHold);
  while (!entered) {
    clock_.AdvanceBy(absl::Milliseconds(10));
    executor_.RunAll();
  }
  async::Future<void> left = agents_[1]->Leave();
  for (int i = 0; i < 100; ++i) {
    executor_.RunAll();
    clock_.AdvanceBy(absl::Milliseconds(10));
  }
  executor_.RunAll();
  EXPECT_FALSE(call.ready());
  held.Set(absl::OkStatus());
  EXPECT_THAT(Run(std::move(call)), IsOk());
  EXPECT_THAT(Run(std::move(left)), IsOk());
}

TEST_F(SimulatedJobTest, SilentWorkerIsLostWithinThreeSecondsAndFenced) {
  ASSERT_THAT(registry_.Register(kStep, [] {}), IsOk());
  Start(1);
  ASSERT_THAT(Run(agents_[0]->Async("w1", kStep)), IsOk());
  ASSERT_THAT(Run(agents_[1]->Async("w0", kStep)), IsOk());
  const async::MonotonicTime start = clock_.Now();
  network_->Partition(agents_[0]->info().address, agents_[1]->info().address,
                      true);
  const absl::Status status =
      Run(agents_[0]->Async("w1", {.timeout = kNoTimeout}, kStep));
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("'w1'")));
  EXPECT_LE(async::TimeBetween(start, clock_.Now()), absl::Seconds(3));
  executor_.RunAll();
  EXPECT_THAT(events_[0], ElementsAre("start", "lost w1"));
  // Later calls fail at once.
  async::Future<void> later = agents_[0]->Async("w1", kStep);
  ASSERT_TRUE(later.ready());
  EXPECT_THAT(later.result(), StatusIs(absl::StatusCode::kUnavailable));
  // It is heard again: too late.
  network_->Partition(agents_[0]->info().address, agents_[1]->info().address,
                      false);
  EXPECT_THAT(Run(agents_[1]->Async("w0", kStep)).code(),
              testing::AnyOf(absl::StatusCode::kFailedPrecondition,
                             absl::StatusCode::kUnavailable));
}

TEST_F(SimulatedJobTest, BrokenConnectionFailsCallsAtOnceAndIsRestored) {
  async::Promise<void> never;
  ASSERT_THAT(registry_.Register(kStep, [&] { return never.future(); }),
              IsOk());
  Start(1);
  async::Future<void> waiting =
      agents_[0]->Async("w1", {.timeout = kNoTimeout}, kStep);
  executor_.RunAll();
  ASSERT_FALSE(waiting.ready());
  network_->Break(agents_[0]->info().address, agents_[1]->info().address);
  executor_.RunAll();
  ASSERT_TRUE(waiting.ready());
  EXPECT_THAT(waiting.result(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_TRUE(GetErrorDetail(waiting.result())->maybe_applied);
  EXPECT_THAT(Run(Call(kRead, {})), IsOk());
}

TEST_F(SimulatedJobTest, RunsRepeatExactly) {
  const auto run = [](uint64_t seed) {
    async::ManualExecutor executor;
    async::SimulatedClock clock;
    InprocNetwork network(
        {.seed = seed, .executor = &executor, .clock = &clock});
    store::HashStore store;
    FunctionRegistry registry;
    std::vector<int> order;
    constexpr Function<void(int)> kNote{"test.Note"};
    EXPECT_THAT(registry.Register(kNote, [&](int n) { order.push_back(n); }),
                IsOk());
    std::vector<std::unique_ptr<Agent>> agents;
    for (int rank = 0; rank < 2; ++rank) {
      AgentOptions options;
      options.name = "w" + std::to_string(rank);
      options.rank = rank;
      options.store = &store;
      options.transport = network.NewTransport();
      options.registry = &registry;
      options.clock = &clock;
      options.executor = &executor;
      agents.push_back(*Agent::Start(std::move(options)));
    }
    network.SetFaults({.drop_request = 0.2,
                       .min_delay = absl::Milliseconds(1),
                       .max_delay = absl::Milliseconds(20)});
    std::vector<async::Future<void>> futures;
    for (int i = 0; i < 100; ++i) {
      futures.push_back(agents[0]->Async(
          "w1", {.timeout = absl::Milliseconds(500)}, kNote, i));
    }
    for (int i = 0; i < 100; ++i) {
      executor.RunAll();
      clock.AdvanceBy(absl::Milliseconds(10));
    }
    executor.RunAll();
    return order;
  };
  const std::vector<int> first = run(42);
  EXPECT_LT(first.size(), 100u);
  EXPECT_FALSE(std::is_sorted(first.begin(), first.end()));
  EXPECT_EQ(first, run(42));
  EXPECT_NE(first, run(43));
}

}  // namespace
}  // namespace hawser::rpc
