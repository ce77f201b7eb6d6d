#include "store/grpc/store.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "net/testing/tcp_proxy.h"
#include "net/testing/test_credentials.h"
#include "store/grpc/server.h"
#include "store/prefix_store.h"
#include "store/testing/conformance.h"
#include "store/testing/test_server.h"
#include "telemetry/testing/recorded_log.h"

namespace hawser::store {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class GrpcUnderTest final : public StoreUnderTest {
 public:
  std::shared_ptr<Store> NewClient() override {
    return MustConnect(server_->address());
  }

 private:
  const std::unique_ptr<StoreServer> server_ = MustStart();
};

class PrefixedGrpcUnderTest final : public StoreUnderTest {
 public:
  std::shared_ptr<Store> NewClient() override {
    return std::make_shared<PrefixStore>("job", grpc_.NewClient());
  }

 private:
  GrpcUnderTest grpc_;
};

INSTANTIATE_TEST_SUITE_P(
    Grpc, StoreConformanceTest,
    testing::Values(
        ConformanceParam{"Grpc",
                         [] { return std::make_unique<GrpcUnderTest>(); }},
        ConformanceParam{"PrefixedGrpc", [] {
                           return std::make_unique<PrefixedGrpcUnderTest>();
                         }}));

TEST(GrpcStoreTest, UnreachableServerIsUnavailableNamingTheAddress) {
  net::TcpProxy proxy(/*server_port=*/0);
  const std::string address = proxy.address();
  EXPECT_THAT(GrpcStore::Connect(
                  {.address = address, .timeout = absl::Milliseconds(200)}),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr(address)));
  EXPECT_THAT(
      GrpcStore::Connect({.address = address, .timeout = absl::Seconds(-1)}),
      StatusIs(absl::StatusCode::kInvalidArgument));
}

// Such as a worker, whose address is easily mistaken for the store's.
TEST(GrpcStoreTest, ServerThatIsNotAStoreIsNamed) {
  int port = 0;
  // Replies UNIMPLEMENTED to every method.
  grpc::CallbackGenericService service;
  const std::unique_ptr<grpc::Server> other =
      grpc::ServerBuilder()
          .RegisterCallbackGenericService(&service)
          .AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                            &port)
          .BuildAndStart();
  ASSERT_NE(other, nullptr);
  const std::string address = absl::StrCat("127.0.0.1:", port);
  EXPECT_THAT(GrpcStore::Connect({.address = address}),
              StatusIs(absl::StatusCode::kUnimplemented,
                       AllOf(HasSubstr(address), HasSubstr("is not a store"))));
}

// Waiting cannot help: ends long before the timeout.
TEST(GrpcStoreTest, TlsAtOneEndOnlyIsNamed) {
  net::TestAuthority authority;
  const auto credentials = authority.Make("w0");
  const auto with_tls = MustStart({.credentials = credentials});
  EXPECT_THAT(GrpcStore::Connect(
                  {.address = with_tls->address(), .timeout = absl::Hours(1)}),
              StatusIs(absl::StatusCode::kUnauthenticated,
                       AllOf(HasSubstr(with_tls->address()),
                             HasSubstr("uses TLS, and this end does not"))));
  const auto without_tls = MustStart();
  EXPECT_THAT(
      GrpcStore::Connect({.address = without_tls->address(),
                          .timeout = absl::Hours(1),
                          .credentials = credentials}),
      StatusIs(absl::StatusCode::kUnauthenticated,
               AllOf(HasSubstr(without_tls->address()),
                     HasSubstr("does not use TLS, and this end does"))));
}

TEST(GrpcStoreTest, MissingRouteIsNamed) {
  EXPECT_THAT(GrpcStore::Connect(
                  {.address = "255.255.255.255:1", .timeout = absl::Hours(1)}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("cannot connect to 255.255.255.255:1")));
}

TEST(GrpcStoreTest, WaitingIsLoggedOnce) {
  net::TcpProxy proxy(/*server_port=*/0);
  const telemetry::RecordedLog log;
  EXPECT_THAT(GrpcStore::Connect({.address = proxy.address(),
                                  .timeout = absl::Milliseconds(4'500)}),
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(log.messages(), ElementsAre(AllOf(HasSubstr("waits for rank 0"),
                                                HasSubstr(proxy.address()))));
}

TEST(GrpcStoreTest, ConnectWaitsForTheServerToStart) {
  net::TcpProxy proxy(/*server_port=*/0);
  std::unique_ptr<GrpcStore> store;
  std::thread connector([&] { store = MustConnect(proxy.address()); });
  const auto server = MustStart();
  proxy.SetServerPort(server->port());
  connector.join();
  EXPECT_THAT(store->Set("k", "v"), IsOk());
}

TEST(GrpcStoreTest, RestartedServerIsNotMistakenForTheFirst) {
  auto server = MustStart();
  net::TcpProxy proxy(server->port());
  const auto store = MustConnect(proxy.address());
  EXPECT_THAT(store->Set("k", "v"), IsOk());
  server = MustStart();
  proxy.SetServerPort(server->port());
  proxy.Reset();
  EXPECT_THAT(store->Get("k"), StatusIs(absl::StatusCode::kFailedPrecondition,
                                        HasSubstr("restarted")));
  EXPECT_THAT(store->Add("n", 1),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST(GrpcStoreTest, WaitingCallSurvivesALostConnection) {
  const auto server = MustStart();
  net::TcpProxy proxy(server->port());
  const auto store = MustConnect(proxy.address());
  std::thread waiter([&] { EXPECT_THAT(store->Get("k"), IsOkAndHolds("v")); });
  for (int i = 0; i < 3; ++i) {
    while (server->stats().num_waiting == 0) std::this_thread::yield();
    // Blocks reconnection until the server has dropped the call of the lost
    // connection.
    proxy.SetServerPort(1);
    proxy.Reset();
    while (server->stats().num_waiting != 0) std::this_thread::yield();
    proxy.SetServerPort(server->port());
  }
  EXPECT_THAT(MustConnect(server->address())->Set("k", "v"), IsOk());
  waiter.join();
}

TEST(GrpcStoreTest, DeadConnectionEndsCallsInTime) {
  const auto server = MustStart();
  net::TcpProxy proxy(server->port());
  const auto store = MustConnect(proxy.address());
  proxy.Discard(net::TcpProxy::Direction::kToClient);
  ExpectCallsEndInTime(*store);
  proxy.SetServerPort(1);
  proxy.Reset();
  ExpectCallsEndInTime(*store);
}

TEST(GrpcStoreTest, ChangeWhoseReplyIsLostIsAppliedOnce) {
  const auto server = MustStart();
  net::TcpProxy proxy(server->port());
  const auto store = MustConnect(proxy.address());
  const auto witness = MustConnect(server->address());
  proxy.Discard(net::TcpProxy::Direction::kToClient);
  std::thread adder([&] { EXPECT_THAT(store->Add("n", 1), IsOkAndHolds(1)); });
  EXPECT_THAT(witness->Get("n"), IsOkAndHolds("1"));
  proxy.Reset();
  adder.join();
  EXPECT_THAT(witness->Get("n"), IsOkAndHolds("1"));

  proxy.Discard(net::TcpProxy::Direction::kToClient);
  std::thread deleter(
      [&] { EXPECT_THAT(store->Delete("n"), IsOkAndHolds(true)); });
  while (server->stats().num_keys != 0) std::this_thread::yield();
  proxy.Reset();
  deleter.join();
}

TEST(GrpcStoreTest, ServerForgetsCallsThatTimedOut) {
  const auto server = MustStart();
  const auto store = MustConnect(server->address());
  EXPECT_THAT(
      store->Wait(std::vector<std::string>{"a", "b"}, absl::Milliseconds(50)),
      StatusIs(absl::StatusCode::kDeadlineExceeded));
  while (server->stats().num_waiting != 0) std::this_thread::yield();
}

TEST(GrpcStoreTest, WatchOfARestartedServerFails) {
  auto server = MustStart();
  net::TcpProxy proxy(server->port());
  const auto store = MustConnect(proxy.address());
  const auto watch = store->WhenChanged({{"k", ""}});
  while (server->stats().num_waiting == 0) std::this_thread::yield();
  server = MustStart();
  proxy.SetServerPort(server->port());
  proxy.Reset();
  EXPECT_THAT(watch.Wait(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                     AllOf(HasSubstr("gRPC store at"),
                                           HasSubstr("restarted"))));
}

TEST(GrpcStoreTest, WatchSurvivesALostConnection) {
  const auto server = MustStart();
  net::TcpProxy proxy(server->port());
  const auto store = MustConnect(proxy.address());
  const auto watch = store->WhenChanged({{"k", ""}});
  for (int i = 0; i < 3; ++i) {
    while (server->stats().num_waiting == 0) std::this_thread::yield();
    proxy.SetServerPort(1);
    proxy.Reset();
    while (server->stats().num_waiting != 0) std::this_thread::yield();
    if (i == 2) break;
    proxy.SetServerPort(server->port());
  }
  // A change that the server cannot report is seen afterwards.
  EXPECT_THAT(MustConnect(server->address())->Set("k", "v"), IsOk());
  EXPECT_FALSE(watch.ready());
  proxy.SetServerPort(server->port());
  EXPECT_THAT(watch.Wait(), IsOkAndHolds(testing::ElementsAre("v")));
}

TEST(GrpcStoreTest, ServerForgetsCancelledWatches) {
  const auto server = MustStart();
  const auto store = MustConnect(server->address());
  const auto watch = store->WhenChanged({{"k", ""}});
  while (server->stats().num_waiting == 0) std::this_thread::yield();
  EXPECT_TRUE(watch.Cancel());
  while (server->stats().num_waiting != 0) std::this_thread::yield();
}

TEST(GrpcStoreTest, DestructionEndsWatches) {
  const auto server = MustStart();
  ExpectDestructionEndsWatches(MustConnect(server->address()));
  while (server->stats().num_waiting != 0) std::this_thread::yield();
}

TEST(GrpcStoreTest, DestructionEndsWatchesWithoutAConnection) {
  const auto server = MustStart();
  net::TcpProxy proxy(server->port());
  auto store = MustConnect(proxy.address());
  proxy.SetServerPort(1);
  proxy.Reset();
  ExpectDestructionEndsWatches(std::move(store));
}

TEST(GrpcStoreTest, LimitsAreTheServers) {
  const auto server =
      MustStart({.limits = {.max_key_bytes = 10, .max_value_bytes = 20}});
  const auto store = MustConnect(server->address());
  EXPECT_THAT(store->Set(std::string(11, 'k'), "v"),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(store->Set("k", std::string(21, 'v')),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(store->Set("k", std::string(20, 'v')), IsOk());
  EXPECT_THAT(store->Append("k", "v"),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(GrpcStoreTest, LargestValueComesBack) {
  const auto server = MustStart();
  const auto store = MustConnect(server->address());
  const std::string value(size_t{4} << 20, 'v');
  EXPECT_THAT(store->Set("k", value), IsOk());
  EXPECT_THAT(store->CompareAndSet("k", value, value), IsOk());
  const absl::StatusOr<std::string> back = store->Get("k");
  ASSERT_THAT(back, IsOk());
  EXPECT_TRUE(*back == value);
}

}  // namespace
}  // namespace hawser::store
