#include "store/grpc_store.h"

#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "async/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "net/credentials.h"
#include "net/test_credentials.h"
#include "proto/store.grpc.pb.h"
#include "proto/store.pb.h"
#include "store/conformance.h"
#include "store/internal/relay.h"
#include "store/prefix_store.h"
#include "store/store_server.h"

namespace hawser::store {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::unique_ptr<StoreServer> MustStart(StoreServerOptions options = {}) {
  absl::StatusOr<std::unique_ptr<StoreServer>> server =
      StoreServer::Start(std::move(options));
  EXPECT_THAT(server, IsOk());
  return server.ok() ? *std::move(server) : nullptr;
}

std::unique_ptr<GrpcStore> MustConnect(const std::string& address) {
  absl::StatusOr<std::unique_ptr<GrpcStore>> store =
      GrpcStore::Connect({.address = address});
  EXPECT_THAT(store, IsOk());
  return store.ok() ? *std::move(store) : nullptr;
}

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

TEST(StoreServerTest, BusyPortNamesTheAddressOnOneLine) {
  const auto server = MustStart();
  EXPECT_THAT(StoreServer::Start({.port = server->port()}),
              StatusIs(absl::StatusCode::kAlreadyExists,
                       AllOf(HasSubstr(server->address()), HasSubstr("in use"),
                             Not(HasSubstr("\n")))));
}

TEST(StoreServerTest, BadAddressesAreRefused) {
  EXPECT_THAT(StoreServer::Start({.port = 65536}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(StoreServer::Start({.port = -1}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(StoreServer::Start({.host = "not an address"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("not an address")));
  EXPECT_THAT(StoreServer::Start({.host = ""}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(StoreServerTest, OtherMachinesMustBeLetInKnowingly) {
  EXPECT_THAT(StoreServer::Start({.host = "0.0.0.0"}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("allow_insecure_network")));
  const auto server =
      MustStart({.host = "0.0.0.0", .allow_insecure_network = true});
  const auto store = MustConnect(absl::StrCat("127.0.0.1:", server->port()));
  EXPECT_THAT(store->Set("k", "v"), IsOk());
}

TEST(StoreServerTest, WorkersOfTheJobReachItOverTls) {
  net::TestAuthority authority;
  const auto server = MustStart({.credentials = authority.Make("keeper")});
  const auto store = GrpcStore::Connect(
      {.address = server->address(), .credentials = authority.Make("w1")});
  ASSERT_THAT(store, IsOk());
  EXPECT_THAT((*store)->Set("k", "v"), IsOk());
  EXPECT_THAT((*store)->Get("k"), IsOkAndHolds("v"));
}

TEST(StoreServerTest, OtherMachinesAreLetInWithTls) {
  net::TestAuthority authority;
  const auto server =
      MustStart({.host = "0.0.0.0", .credentials = authority.Make("keeper")});
  EXPECT_THAT(
      GrpcStore::Connect({.address = absl::StrCat("127.0.0.1:", server->port()),
                          .credentials = authority.Make("w1")}),
      IsOk());
}

TEST(StoreServerTest, StrangersAreRefusedOverTls) {
  net::TestAuthority authority;
  net::TestAuthority other_authority;
  const auto server = MustStart({.credentials = authority.Make("keeper")});
  // Not waited for: the default timeout is minutes.
  EXPECT_THAT(
      GrpcStore::Connect({.address = server->address(),
                          .credentials = other_authority.Make("w1")}),
      StatusIs(absl::StatusCode::kUnauthenticated, HasSubstr("handshake")));
  EXPECT_THAT(GrpcStore::Connect({.address = server->address(),
                                  .timeout = absl::Milliseconds(300)}),
              StatusIs(absl::StatusCode::kUnavailable));
}

TEST(StoreServerTest, TokenIsWantedOfEachCall) {
  net::TestAuthority files;
  const auto with_token = [&](char digit) {
    net::CredentialsOptions options;
    options.token_path = files.Write("token", std::string(64, digit));
    return *net::Credentials::Create(options, std::nullopt);
  };
  const auto server = MustStart({.credentials = with_token('a')});
  EXPECT_THAT(
      GrpcStore::Connect({.address = server->address()}),
      StatusIs(absl::StatusCode::kUnauthenticated, HasSubstr("no token")));
  EXPECT_THAT(
      GrpcStore::Connect(
          {.address = server->address(), .credentials = with_token('b')}),
      StatusIs(absl::StatusCode::kUnauthenticated, HasSubstr("not the job's")));
  const auto store = GrpcStore::Connect(
      {.address = server->address(), .credentials = with_token('a')});
  ASSERT_THAT(store, IsOk());
  EXPECT_THAT((*store)->Set("k", "v"), IsOk());

  // Not only of the first call of a client.
  const auto stub = v1::Store::NewStub(grpc::CreateChannel(
      server->address(), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  v1::StoreSetRequest request;
  v1::StoreSetReply reply;
  EXPECT_EQ(stub->Set(&context, request, &reply).error_code(),
            grpc::StatusCode::UNAUTHENTICATED);
}

TEST(StoreServerTest, ServersOfOneProcessAreSeparate) {
  const auto a = MustStart();
  const auto b = MustStart();
  EXPECT_THAT(MustConnect(a->address())->Set("k", "v"), IsOk());
  EXPECT_THAT(MustConnect(b->address())->NumKeys(), IsOkAndHolds(0));
  EXPECT_EQ(a->stats().num_keys, 1);
}

TEST(StoreServerTest, ShutdownIsIdempotentAndEndsWaitingCalls) {
  const auto server = MustStart();
  const auto store = MustConnect(server->address());
  std::thread waiter([&] {
    EXPECT_THAT(store->Get("k", absl::Milliseconds(700)),
                StatusIs(absl::StatusCode::kDeadlineExceeded,
                         HasSubstr("cannot be reached")));
  });
  while (server->stats().num_waiting == 0) std::this_thread::yield();
  server->Shutdown();
  server->Shutdown();
  EXPECT_EQ(server->stats().num_waiting, 0);
  waiter.join();
}

TEST(GrpcStoreTest, NobodyThereIsUnavailableNamingTheAddress) {
  internal::Relay relay(/*server_port=*/0);
  const std::string address = relay.address();
  EXPECT_THAT(GrpcStore::Connect(
                  {.address = address, .timeout = absl::Milliseconds(200)}),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr(address)));
  EXPECT_THAT(
      GrpcStore::Connect({.address = address, .timeout = absl::Seconds(-1)}),
      StatusIs(absl::StatusCode::kInvalidArgument));
}

// Such as the address of a worker, which is easily taken for the store's.
TEST(GrpcStoreTest, ServerThatIsNoStoreIsNamed) {
  int port = 0;
  // Answers that it does not know the method.
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
                       AllOf(HasSubstr(address), HasSubstr("is no store"))));
}

TEST(GrpcStoreTest, ConnectWaitsForTheServerToStart) {
  internal::Relay relay(/*server_port=*/0);
  std::unique_ptr<GrpcStore> store;
  std::thread connector([&] { store = MustConnect(relay.address()); });
  const auto server = MustStart();
  relay.SetServerPort(server->port());
  connector.join();
  EXPECT_THAT(store->Set("k", "v"), IsOk());
}

TEST(GrpcStoreTest, RestartedServerIsNotMistakenForTheFirst) {
  auto server = MustStart();
  internal::Relay relay(server->port());
  const auto store = MustConnect(relay.address());
  EXPECT_THAT(store->Set("k", "v"), IsOk());
  server = MustStart();
  relay.SetServerPort(server->port());
  relay.CutConnections();
  EXPECT_THAT(store->Get("k"), StatusIs(absl::StatusCode::kFailedPrecondition,
                                        HasSubstr("restarted")));
  EXPECT_THAT(store->Add("n", 1),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST(GrpcStoreTest, WaitingCallSurvivesALostConnection) {
  const auto server = MustStart();
  internal::Relay relay(server->port());
  const auto store = MustConnect(relay.address());
  std::thread waiter([&] { EXPECT_THAT(store->Get("k"), IsOkAndHolds("v")); });
  for (int i = 0; i < 3; ++i) {
    while (server->stats().num_waiting == 0) std::this_thread::yield();
    relay.CutConnections();
    // The server forgets the call of the lost connection.
    while (server->stats().num_waiting != 0) std::this_thread::yield();
  }
  EXPECT_THAT(MustConnect(server->address())->Set("k", "v"), IsOk());
  waiter.join();
}

TEST(GrpcStoreTest, ChangeWhoseReplyIsLostIsAppliedOnce) {
  const auto server = MustStart();
  internal::Relay relay(server->port());
  const auto store = MustConnect(relay.address());
  const auto witness = MustConnect(server->address());
  relay.SwallowReplies(true);
  std::thread adder([&] { EXPECT_THAT(store->Add("n", 1), IsOkAndHolds(1)); });
  EXPECT_THAT(witness->Get("n"), IsOkAndHolds("1"));
  relay.SwallowReplies(false);
  relay.CutConnections();
  adder.join();
  EXPECT_THAT(witness->Get("n"), IsOkAndHolds("1"));

  relay.SwallowReplies(true);
  std::thread deleter(
      [&] { EXPECT_THAT(store->Delete("n"), IsOkAndHolds(true)); });
  while (server->stats().num_keys != 0) std::this_thread::yield();
  relay.SwallowReplies(false);
  relay.CutConnections();
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

// Requests that no GrpcStore makes.
class StoreServiceTest : public testing::Test {
 protected:
  StoreServiceTest()
      : server_(MustStart()),
        stub_(v1::Store::NewStub(grpc::CreateChannel(
            server_->address(), grpc::InsecureChannelCredentials()))) {
    grpc::ClientContext context;
    EXPECT_TRUE(stub_->Hello(&context, {}, &hello_).ok());
  }

  grpc::StatusCode Set(const v1::StoreSetRequest& request,
                       bool compressed = false) {
    grpc::ClientContext context;
    if (compressed) context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
    v1::StoreSetReply reply;
    return stub_->Set(&context, request, &reply).error_code();
  }

  v1::StoreSetRequest ValidSet() const {
    v1::StoreSetRequest request;
    request.set_server_incarnation(hello_.server_incarnation());
    request.mutable_request_id()->set_client(1);
    request.mutable_request_id()->set_sequence(1);
    request.set_key("k");
    request.set_value("v");
    return request;
  }

  const std::unique_ptr<StoreServer> server_;
  const std::unique_ptr<v1::Store::Stub> stub_;
  v1::StoreHelloReply hello_;
};

TEST_F(StoreServiceTest, ForeignIncarnationIsRefused) {
  EXPECT_NE(hello_.server_incarnation(), 0u);
  v1::StoreSetRequest request = ValidSet();
  request.set_server_incarnation(hello_.server_incarnation() + 1);
  EXPECT_EQ(Set(request), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(Set(ValidSet()), grpc::StatusCode::OK);
}

TEST_F(StoreServiceTest, ChangeWithoutIdIsRefused) {
  v1::StoreSetRequest request = ValidSet();
  request.clear_request_id();
  EXPECT_EQ(Set(request), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(StoreServiceTest, RepeatedIdIsNotAppliedAgain) {
  EXPECT_EQ(Set(ValidSet()), grpc::StatusCode::OK);
  v1::StoreSetRequest repeated = ValidSet();
  repeated.set_key("other");
  EXPECT_EQ(Set(repeated), grpc::StatusCode::OK);
  EXPECT_EQ(server_->stats().num_keys, 1);
}

TEST_F(StoreServiceTest, BadKeysAreRefused) {
  v1::StoreSetRequest request = ValidSet();
  request.clear_key();
  EXPECT_EQ(Set(request), grpc::StatusCode::INVALID_ARGUMENT);
  request = ValidSet();
  request.mutable_request_id()->set_sequence(2);
  request.set_key(std::string(hello_.max_key_bytes() + 1, 'k'));
  EXPECT_EQ(Set(request), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(StoreServiceTest, OversizedAndCompressedMessagesAreRefused) {
  v1::StoreSetRequest request = ValidSet();
  request.set_value(std::string(4 * hello_.max_value_bytes(), 'v'));
  EXPECT_EQ(Set(request), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(Set(request, /*compressed=*/true), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(server_->stats().num_keys, 0);
}

}  // namespace
}  // namespace hawser::store
