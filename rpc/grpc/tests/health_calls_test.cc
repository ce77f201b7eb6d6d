// Tests of the health service of workers and stores with probes.

#include "rpc/grpc/health_calls.h"

#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "async/blocking_region.h"
#include "async/future.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "grpcpp/client_context.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"
#include "rpc/agent/agent.h"
#include "rpc/functions/function.h"
#include "rpc/functions/function_registry.h"
#include "rpc/grpc/transport.h"
#include "rpc/identity/worker_info.h"
#include "rpc/membership/membership_log.h"
#include "rpc/testing/agent_test_fixture.h"
#include "rpc/testing/simulated_store_link.h"
#include "rpc/testing/transport_test_param.h"
#include "store/grpc/server.h"
#include "store/hash/store.h"

namespace hawser::rpc {
namespace {

using ::grpc::health::v1::HealthCheckRequest;
using ::grpc::health::v1::HealthCheckResponse;
using ::hawser::async::IsOk;

constexpr char kWorkerService[] = "hawser.v1.WorkerService";

// A health probe of one address.
class Probe {
 public:
  explicit Probe(const std::string& address)
      : stub_(::grpc::health::v1::Health::NewStub(::grpc::CreateChannel(
            address, ::grpc::InsecureChannelCredentials()))) {}

  // Returns a HealthCheckResponse::ServingStatus, or the negated error code.
  int Check(const std::string& service) {
    ::grpc::ClientContext context;
    HealthCheckRequest request;
    request.set_service(service);
    HealthCheckResponse response;
    const ::grpc::Status status = stub_->Check(&context, request, &response);
    return status.ok() ? static_cast<int>(response.status())
                       : -static_cast<int>(status.error_code());
  }

  ::grpc::health::v1::Health::Stub& stub() { return *stub_; }

 private:
  const std::unique_ptr<::grpc::health::v1::Health::Stub> stub_;
};

// One call of Watch.
class Watch {
 public:
  Watch(Probe& probe, const std::string& service) {
    HealthCheckRequest request;
    request.set_service(service);
    reader_ = probe.stub().Watch(&context_, request);
  }

  // Returns the next status, or the negated status code at the end of the
  // stream.
  int Next() {
    HealthCheckResponse response;
    if (reader_->Read(&response)) return static_cast<int>(response.status());
    return -static_cast<int>(reader_->Finish().error_code());
  }
  // Returns the status after NOT_SERVING, which may be skipped if another
  // status, or the end, follows quickly.
  int NextPastNotServing() {
    const int next = Next();
    return next == HealthCheckResponse::NOT_SERVING ? Next() : next;
  }
  void Cancel() { context_.TryCancel(); }

 private:
  ::grpc::ClientContext context_;
  std::unique_ptr<::grpc::ClientReader<HealthCheckResponse>> reader_;
};

class HealthCallsTest : public testing::Test {
 protected:
  void SetUp() override {
    transport_ = std::make_unique<GrpcTransport>();
    absl::StatusOr<std::string> address = transport_->Listen(
        "127.0.0.1:0", {{.path = absl::StrCat("/", kWorkerService, "/Call"),
                         .handler = [](std::unique_ptr<IncomingCall>) {},
                         .hot = false}});
    ASSERT_THAT(address, IsOk());
    probe_ = std::make_unique<Probe>(*address);
  }

  std::unique_ptr<GrpcTransport> transport_;
  std::unique_ptr<Probe> probe_;
};

TEST_F(HealthCallsTest, CheckReturnsWhetherItServes) {
  for (const char* service : {"", kWorkerService}) {
    EXPECT_EQ(probe_->Check(service), HealthCheckResponse::NOT_SERVING);
    transport_->SetServing(true);
    EXPECT_EQ(probe_->Check(service), HealthCheckResponse::SERVING);
    transport_->SetServing(false);
  }
  EXPECT_EQ(probe_->Check("example.None"), -::grpc::StatusCode::NOT_FOUND);
}

TEST_F(HealthCallsTest, WatchOfARoleIsNotifiedOnceItServes) {
  Watch watch(*probe_, "ps");
  EXPECT_EQ(watch.Next(), HealthCheckResponse::SERVICE_UNKNOWN);
  transport_->SetRoles({"trainer", "ps"});
  transport_->SetServing(true);
  EXPECT_EQ(watch.NextPastNotServing(), HealthCheckResponse::SERVING);
  EXPECT_EQ(probe_->Check("trainer"), HealthCheckResponse::SERVING);
  transport_->SetServing(false);
  EXPECT_EQ(probe_->Check("trainer"), HealthCheckResponse::NOT_SERVING);
}

TEST_F(HealthCallsTest, WatchReportsEachChangeAndEndsWithTheServer) {
  Watch watch(*probe_, kWorkerService);
  EXPECT_EQ(watch.Next(), HealthCheckResponse::NOT_SERVING);
  transport_->SetServing(true);
  EXPECT_EQ(watch.Next(), HealthCheckResponse::SERVING);
  transport_->Shutdown();
  EXPECT_EQ(watch.NextPastNotServing(), -::grpc::StatusCode::UNAVAILABLE);
}

TEST_F(HealthCallsTest, WatchOfAnUnknownServiceWaitsForIt) {
  Watch watch(*probe_, "example.None");
  EXPECT_EQ(watch.Next(), HealthCheckResponse::SERVICE_UNKNOWN);
}

TEST_F(HealthCallsTest, WatchesAreLimitedAndEndWithTheirCallers) {
  for (int round = 0; round < 2; ++round) {
    std::vector<std::unique_ptr<Watch>> watches;
    while (watches.size() < net::Health::kMaxObservers) {
      auto watch = std::make_unique<Watch>(*probe_, "");
      if (watch->Next() == HealthCheckResponse::NOT_SERVING) {
        watches.push_back(std::move(watch));
      } else {
        // The watches of the first round end with a small delay.
        ASSERT_EQ(round, 1);
      }
    }
    EXPECT_EQ(Watch(*probe_, "").Next(),
              -::grpc::StatusCode::RESOURCE_EXHAUSTED);
    for (auto& watch : watches) {
      watch->Cancel();
      EXPECT_EQ(watch->Next(), -::grpc::StatusCode::CANCELLED);
    }
  }
}

// "SERVING" only while the worker is a member of its job.
TEST(WorkerHealthTest, ServesFromJoiningToLeaving) {
  char directory[] = "/tmp/hawser_XXXXXX";
  ASSERT_NE(mkdtemp(directory), nullptr);
  store::HashStore store;
  FunctionRegistry registry;
  const auto start = [&](int rank) {
    AgentOptions options;
    options.name = absl::StrCat("w", rank);
    options.rank = rank;
    options.roles = {absl::StrCat("role", rank)};
    options.world_size = 2;
    options.store = &store;
    options.transport = std::make_unique<GrpcTransport>();
    options.bind_address = absl::StrCat("unix:", directory, "/w", rank);
    // Generous, for overloaded machines.
    options.liveness.silent_limit = absl::Seconds(20);
    options.liveness.unreachable_limit = absl::Seconds(20);
    options.registry = &registry;
    return std::async(std::launch::async,
                      [options = std::move(options)]() mutable {
                        return Agent::Start(std::move(options));
                      });
  };
  Probe probe(absl::StrCat("unix:", directory, "/w0"));
  auto first = start(0);
  // It serves, so that others can find it, but is not a member yet.
  int health = 0;
  while ((health = probe.Check(kWorkerService)) < 0) {
  }
  EXPECT_EQ(health, HealthCheckResponse::NOT_SERVING);
  absl::StatusOr<std::unique_ptr<Agent>> other = start(1).get();
  ASSERT_THAT(other, IsOk());
  absl::StatusOr<std::unique_ptr<Agent>> agent = first.get();
  ASSERT_THAT(agent, IsOk());
  EXPECT_EQ(probe.Check(kWorkerService), HealthCheckResponse::SERVING);
  EXPECT_EQ(probe.Check("role0"), HealthCheckResponse::SERVING);
  EXPECT_EQ(probe.Check("role1"), -::grpc::StatusCode::NOT_FOUND);

  // It leaves, which completes when the other worker leaves as well.
  auto leaving =
      std::async(std::launch::async, [&] { return (*agent)->Shutdown(); });
  while ((health = probe.Check(kWorkerService)) ==
         HealthCheckResponse::SERVING) {
  }
  EXPECT_EQ(health, HealthCheckResponse::NOT_SERVING);
  EXPECT_THAT((*other)->Shutdown(), IsOk());
  EXPECT_THAT(leaving.get(), IsOk());
  other->reset();
  agent->reset();
  EXPECT_EQ(rmdir(directory), 0);
}

// A client that checks the health before calling must not be rejected.
TEST(WorkerHealthTest, StopsServingBeforeItRejectsCalls) {
  constexpr Function<int64_t()> kOne{"test.One"};
  std::atomic<bool> slow = false;
  absl::Notification answer;
  TestJob job(MakeTransportFactory(TransportParam::kGrpc));
  // Other workers are not notified meanwhile.
  SimulatedStoreLink link(&job.store(), {.on_way = [&] {
    if (!slow) return;
    async::BlockingRegion region;
    answer.WaitForNotification();
  }});
  ASSERT_THAT(job.registry().Register(kOne, [] { return 1; }), IsOk());
  job.StartOne(0);
  job.StartOne(1, [&](int, AgentOptions& options) { options.store = &link; });
  Probe probe(job.agent(1).info().address);
  EXPECT_EQ(probe.Check(kWorkerService), HealthCheckResponse::SERVING);
  slow = true;
  const async::Future<void> left = job.agent(1).Leave();
  while (job.agent(0).Sync("w1", kOne).ok()) {
  }
  EXPECT_EQ(probe.Check(kWorkerService), HealthCheckResponse::NOT_SERVING);
  answer.Notify();
  EXPECT_THAT(left.Wait(), IsOk());
  job.StopAll();
}

TEST(WorkerHealthTest, DoesNotServeOnceDeclaredLost) {
  TestJob job(MakeTransportFactory(TransportParam::kGrpc));
  job.StartOne(0);
  const WorkerInfo worker = job.agent(0).info();
  Probe probe(worker.address);
  EXPECT_EQ(probe.Check(kWorkerService), HealthCheckResponse::SERVING);
  MembershipLog log(&job.store(), job.agent(0).job());
  ASSERT_THAT(
      log.Append(LostEvent(worker.incarnation, Incarnation(7), "was silent")),
      IsOk());
  // It reads the event soon.
  int health = 0;
  while ((health = probe.Check(kWorkerService)) ==
         HealthCheckResponse::SERVING) {
  }
  EXPECT_EQ(health, HealthCheckResponse::NOT_SERVING);
}

TEST(StoreHealthTest, ServesUntilItIsShutDown) {
  auto server = store::StoreServer::Start({});
  ASSERT_THAT(server, IsOk());
  Probe probe((*server)->address());
  EXPECT_EQ(probe.Check("hawser.v1.Store"), HealthCheckResponse::SERVING);
  EXPECT_EQ(probe.Check("example.None"), -::grpc::StatusCode::NOT_FOUND);
  Watch watch(probe, "");
  EXPECT_EQ(watch.Next(), HealthCheckResponse::SERVING);
  (*server)->Shutdown();
  EXPECT_LT(watch.NextPastNotServing(), 0);
}

}  // namespace
}  // namespace hawser::rpc
