#include "store/grpc/server.h"

#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <sys/resource.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "net/auth/credentials.h"
#include "net/testing/raw_http2.h"
#include "net/testing/test_credentials.h"
#include "proto/store.grpc.pb.h"
#include "proto/store.pb.h"
#include "store/grpc/store.h"
#include "store/testing/test_server.h"

namespace hawser::store {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Peak of the process's memory so far, in bytes.
size_t PeakMemory() {
  rusage usage{};
  EXPECT_EQ(getrusage(RUSAGE_SELF, &usage), 0);
  return static_cast<size_t>(usage.ru_maxrss) << 10;
}

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

// An error shows the key escaped, four bytes for one.
TEST(StoreServerTest, ErrorThatShowsALongKeyArrives) {
  const auto server = MustStart();
  const auto store = MustConnect(server->address());
  const std::string key(4000, '\xff');
  ASSERT_THAT(store->Set(key, "no number"), IsOk());
  EXPECT_THAT(store->Add(key, 1),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("\\377")));
}

TEST(StoreServerTest, NonLoopbackAddressNeedsTlsOrPermission) {
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

TEST(StoreServerTest, NonLoopbackAddressIsAllowedWithTls) {
  net::TestAuthority authority;
  const auto server =
      MustStart({.host = "0.0.0.0", .credentials = authority.Make("keeper")});
  EXPECT_THAT(
      GrpcStore::Connect({.address = absl::StrCat("127.0.0.1:", server->port()),
                          .credentials = authority.Make("w1")}),
      IsOk());
}

TEST(StoreServerTest, ForeignCertificatesAreRejected) {
  net::TestAuthority authority;
  net::TestAuthority other_authority;
  const auto server = MustStart({.credentials = authority.Make("keeper")});
  // Fails at once; the default timeout is minutes.
  EXPECT_THAT(
      GrpcStore::Connect({.address = server->address(),
                          .credentials = other_authority.Make("w1")}),
      StatusIs(absl::StatusCode::kUnauthenticated, HasSubstr("handshake")));
  EXPECT_THAT(GrpcStore::Connect({.address = server->address(),
                                  .timeout = absl::Milliseconds(300)}),
              StatusIs(absl::StatusCode::kUnauthenticated,
                       HasSubstr("uses TLS, and this end does not")));
}

// gRPC decodes no headers of their holders, who get no answer to a call.
TEST(StoreServerTest, CertificatesOfOtherJobsAreRefusedInTheHandshake) {
  net::TestAuthority authority("digits");
  net::TestAuthority other_authority("words");
  const std::string both =
      authority.Write("both", authority.authority().certificate +
                                  other_authority.authority().certificate);
  const auto made = [&](net::CredentialsOptions options) {
    options.ca_path = both;
    return *net::Credentials::Create(options, std::nullopt);
  };
  const auto server =
      MustStart({.credentials = made(authority.Issue("keeper"))});
  const auto status_of = [&](const net::Credentials& credentials) {
    const auto stub = v1::Store::NewStub(grpc::CreateChannel(
        server->address(),
        credentials.ForChannel(
            std::make_shared<grpc::experimental::NoOpCertificateVerifier>())));
    grpc::ClientContext context;
    v1::StoreHelloReply reply;
    return stub->Hello(&context, {}, &reply).error_code();
  };
  EXPECT_EQ(status_of(*made(authority.Issue("w1"))), grpc::StatusCode::OK);
  EXPECT_EQ(status_of(*made(other_authority.Issue("w1"))),
            grpc::StatusCode::UNAVAILABLE);
}

TEST(StoreServerTest, EachCallNeedsTheToken) {
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

  // A call with two tokens has none: only one of them would be compared.
  for (const char digit : {'a', 'b'}) {
    const auto two = v1::Store::NewStub(grpc::CreateChannel(
        server->address(), grpc::InsecureChannelCredentials()));
    grpc::ClientContext both;
    both.AddMetadata("authorization", "Bearer " + std::string(64, digit));
    both.AddMetadata("authorization", "Bearer " + std::string(64, 'a'));
    v1::StoreHelloReply hello;
    EXPECT_EQ(two->Hello(&both, {}, &hello).error_code(),
              grpc::StatusCode::UNAUTHENTICATED)
        << digit;
  }

  // Each call needs the token, not only the first call of a client.
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

TEST(StoreServerTest, LimitsMustBePositive) {
  EXPECT_THAT(StoreServer::Start({.server_limits = {.max_waiting_calls = 0}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("max_waiting_calls")));
}

TEST(StoreServerTest, ClientCannotBlockOthers) {
  const auto server =
      MustStart({.server_limits = {.max_waiting_calls_per_client = 1}});
  const auto store = MustConnect(server->address());
  const auto other = MustConnect(server->address());
  std::thread first([&] { EXPECT_THAT(store->Get("k"), IsOkAndHolds("v")); });
  while (server->stats().num_waiting < 1) std::this_thread::yield();
  EXPECT_THAT(store->Get("k"),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("max_waiting_calls_per_client")));
  EXPECT_EQ(server->stats().num_waiting, 1);
  std::thread second([&] { EXPECT_THAT(other->Get("k"), IsOkAndHolds("v")); });
  while (server->stats().num_waiting < 2) std::this_thread::yield();
  // Calls that need not wait are not counted.
  EXPECT_THAT(store->Set("l", "w"), IsOk());
  EXPECT_THAT(store->Get("l"), IsOkAndHolds("w"));
  EXPECT_THAT(store->Set("k", "v"), IsOk());
  first.join();
  second.join();
  // Completed calls are not counted. The server counts a call until it has seen
  // that the reply was sent, which may be after its arrival.
  absl::Status status;
  do {
    status = store->Get("never", absl::Milliseconds(50)).status();
  } while (absl::IsResourceExhausted(status));
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kDeadlineExceeded));
}

TEST(StoreServerTest, WatchesCountAsWaitingCalls) {
  const auto server =
      MustStart({.server_limits = {.max_waiting_calls_per_client = 1}});
  const auto store = MustConnect(server->address());
  const auto watch = store->WhenChanged({{"k", ""}});
  while (server->stats().num_waiting < 1) std::this_thread::yield();
  EXPECT_THAT(store->WhenChanged({{"k", ""}}).Wait(),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("max_waiting_calls_per_client")));
  EXPECT_THAT(store->Get("k"), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(server->stats().num_waiting, 1);
  // A watch that need not wait is not counted.
  EXPECT_THAT(store->WhenChanged({{"k", "v"}}).Wait(), IsOk());
  EXPECT_THAT(store->Set("k", "v"), IsOk());
  EXPECT_THAT(watch.Wait(), IsOk());
}

TEST(StoreServerTest, KnownValuesOfWatchesCountTowardsTheQuota) {
  const auto server = MustStart(
      {.server_limits = {.max_waiting_bytes_per_client = size_t{1} << 20}});
  const auto store = MustConnect(server->address());
  const std::string value(size_t{600} << 10, 'v');
  EXPECT_THAT(store->Set("k", value), IsOk());
  EXPECT_THAT(store->WhenChanged({{"k", value}}).Wait(),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("max_waiting_bytes_per_client")));
}

TEST(StoreServerTest, ClientWithManyWaitingCallsCanStillChangeKeys) {
  const auto server = MustStart();
  const auto stub = v1::Store::NewStub(grpc::CreateChannel(
      server->address(), grpc::InsecureChannelCredentials()));
  v1::StoreHelloReply hello;
  grpc::ClientContext hello_context;
  ASSERT_TRUE(stub->Hello(&hello_context, {}, &hello).ok());
  v1::StoreGetRequest get;
  get.set_server_incarnation(hello.server_incarnation());
  get.set_key("k");

  // More than the concurrent calls of a connection.
  constexpr int kCalls = 300;
  grpc::CompletionQueue queue;
  struct Call {
    grpc::ClientContext context;
    v1::StoreGetReply reply;
    grpc::Status status;
    std::unique_ptr<grpc::ClientAsyncResponseReader<v1::StoreGetReply>> reader;
  };
  std::vector<Call> calls(kCalls);
  for (Call& call : calls) {
    call.reader = stub->AsyncGet(&call.context, get, &queue);
    call.reader->Finish(&call.reply, &call.status, &call);
  }
  void* tag = nullptr;
  bool ok = false;
  const int limit = StoreServerLimits().max_waiting_calls_per_client;
  for (int i = limit; i < kCalls; ++i) {
    ASSERT_TRUE(queue.Next(&tag, &ok));
    const grpc::Status& status = static_cast<Call*>(tag)->status;
    ASSERT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED)
        << status.error_message();
  }
  while (server->stats().num_waiting != limit) std::this_thread::yield();

  v1::StoreSetRequest set;
  set.set_server_incarnation(hello.server_incarnation());
  set.mutable_request_id()->set_client(1);
  set.mutable_request_id()->set_sequence(1);
  set.set_key("k");
  set.set_value("v");
  grpc::ClientContext set_context;
  v1::StoreSetReply set_reply;
  EXPECT_TRUE(stub->Set(&set_context, set, &set_reply).ok());
  for (int i = 0; i < limit; ++i) {
    ASSERT_TRUE(queue.Next(&tag, &ok));
    EXPECT_EQ(static_cast<Call*>(tag)->reply.value(), "v");
  }
  queue.Shutdown();
}

TEST(StoreServerTest, StoredBytesPerClientAreLimited) {
  const auto server = MustStart(
      {.server_limits = {.max_stored_bytes_per_client = size_t{1} << 20}});
  const auto store = MustConnect(server->address());
  const std::string value(size_t{600} << 10, 'v');
  EXPECT_THAT(store->Set("a", value), IsOk());
  EXPECT_THAT(store->Set("b", value),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("max_stored_bytes_per_client")));
  EXPECT_THAT(MustConnect(server->address())->Set("b", value), IsOk());
}

TEST(StoreServerTest, ClientsAreIdentifiedByTheirCertificates) {
  net::TestAuthority authority;
  const auto server = MustStart(
      {.credentials = authority.Make("keeper"),
       .server_limits = {.max_stored_bytes_per_client = size_t{1} << 20}});
  const auto credentials = authority.Make("w1");
  const auto connect = [&] {
    return *GrpcStore::Connect(
        {.address = server->address(), .credentials = credentials});
  };
  const std::string value(size_t{600} << 10, 'v');
  EXPECT_THAT(connect()->Set("a", value), IsOk());
  // Uses another connection.
  EXPECT_THAT(connect()->Set("b", value),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("written by hawser://default/w1")));
}

// A client that reads nothing gets no further values: the server would have to
// keep them. Others still do.
TEST(StoreServerTest, ValuesThatNobodyReadsAreLimited) {
  constexpr size_t kValueBytes = size_t{1} << 20;
  const auto server = MustStart(
      {.server_limits = {.max_reply_bytes_per_client = 4 * kValueBytes}});
  const auto store = MustConnect(server->address());
  ASSERT_THAT(store->Set("k", std::string(kValueBytes, 'v')), IsOk());
  v1::StoreHelloReply hello;
  {
    grpc::ClientContext context;
    ASSERT_TRUE(v1::Store::NewStub(
                    grpc::CreateChannel(server->address(),
                                        grpc::InsecureChannelCredentials()))
                    ->Hello(&context, {}, &hello)
                    .ok());
  }
  net::RawHttp2 peer(server->address());
  ASSERT_TRUE(peer.SendPreface(/*reads_nothing=*/true));
  // Of both methods that return values.
  const auto request = [&](uint32_t number) {
    v1::StoreGetRequest get;
    get.set_server_incarnation(hello.server_incarnation());
    get.set_key("k");
    v1::StoreAwaitChangeRequest watch;
    watch.set_server_incarnation(hello.server_incarnation());
    watch.add_keys()->set_key("k");
    watch.mutable_keys(0)->set_known("");
    return number % 2 == 0
               ? std::pair("/hawser.v1.Store/Get", get.SerializeAsString())
               : std::pair("/hawser.v1.Store/AwaitChange",
                           watch.SerializeAsString());
  };
  constexpr int kCalls = 20;
  for (uint32_t i = 0; i < kCalls; ++i) {
    const auto [path, message] = request(i);
    ASSERT_TRUE(peer.SendCall(2 * i + 1, path, message));
  }
  // Errors need no DATA frames; their headers end the stream.
  int num_refused = 0;
  net::Frame frame;
  while (num_refused < kCalls - 4) {
    ASSERT_TRUE(peer.Await(net::FrameType::kHeaders, frame));
    if ((frame.flags & net::kEndStream) == 0) continue;
    ++num_refused;
    EXPECT_THAT(frame.payload, HasSubstr("max_reply_bytes_per_client"));
  }
  EXPECT_THAT(store->Get("k"), IsOkAndHolds(std::string(kValueBytes, 'v')));
}

// The same for waiting calls that a change completes together.
TEST(StoreServerTest, ValuesOfWaitingCallsAreLimitedToo) {
  constexpr size_t kValueBytes = size_t{1} << 20;
  const auto server = MustStart(
      {.server_limits = {.max_reply_bytes_per_client = 4 * kValueBytes}});
  const auto store = MustConnect(server->address());
  const auto waiting = MustConnect(server->address());
  std::vector<std::thread> threads;
  std::atomic<int> num_refused = 0;
  constexpr int kCalls = 64;
  for (int i = 0; i < kCalls; ++i) {
    threads.emplace_back([&] {
      const absl::Status status = waiting->Get("k").status();
      if (absl::IsResourceExhausted(status)) ++num_refused;
    });
  }
  while (server->stats().num_waiting < kCalls) std::this_thread::yield();
  ASSERT_THAT(store->Set("k", std::string(kValueBytes, 'v')), IsOk());
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(num_refused, 0);
  // Read replies are not counted any more; the server learns of the last ones
  // a little later.
  while (!waiting->Get("k").ok()) std::this_thread::yield();
}

TEST(StoreServerTest, KeysOfACallAreLimited) {
  const auto server = MustStart({.server_limits = {.max_keys_per_call = 2}});
  const auto store = MustConnect(server->address());
  const auto refused = StatusIs(absl::StatusCode::kResourceExhausted,
                                HasSubstr("max_keys_per_call"));
  const std::vector<std::string> keys = {"a", "b", "c"};
  EXPECT_THAT(store->Wait(keys), refused);
  EXPECT_THAT(store->Check(keys), refused);
  EXPECT_THAT(store->WhenChanged({{"a", ""}, {"b", ""}, {"c", ""}}).Wait(),
              refused);
  EXPECT_THAT(store->Check(std::vector<std::string>{"a", "b"}),
              IsOkAndHolds(false));
}

// A wait needs no values, however often its request names their keys.
TEST(StoreServerTest, WaitCopiesNoValues) {
  constexpr size_t kValueBytes = size_t{4} << 20;
  const auto server = MustStart();
  const auto store = MustConnect(server->address());
  ASSERT_THAT(store->Set("k", std::string(kValueBytes, 'v')), IsOk());
  const size_t before = PeakMemory();
  EXPECT_THAT(store->Wait(std::vector<std::string>(500, "k")), IsOk());
  EXPECT_LT(PeakMemory() - before, 10 * kValueBytes);
}

// Requests that GrpcStore never makes.
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

TEST_F(StoreServiceTest, ShutdownIsIdempotentAndEndsWaitingCalls) {
  const auto store = MustConnect(server_->address());
  std::thread waiter([&] {
    // Without a deadline, so that only the server ends it.
    grpc::ClientContext context;
    v1::StoreGetRequest request;
    request.set_server_incarnation(hello_.server_incarnation());
    request.set_key("k");
    v1::StoreGetReply reply;
    EXPECT_FALSE(stub_->Get(&context, request, &reply).ok());
  });
  while (server_->stats().num_waiting == 0) std::this_thread::yield();
  server_->Shutdown();
  server_->Shutdown();
  EXPECT_EQ(server_->stats().num_waiting, 0);
  waiter.join();

  // Reported once the client has noticed the loss of the connection.
  absl::Status status;
  do {
    status = store->Get("k", absl::Milliseconds(50)).status();
    ASSERT_THAT(status, StatusIs(absl::StatusCode::kDeadlineExceeded));
  } while (!absl::StrContains(status.message(), "cannot be reached"));
}

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

TEST_F(StoreServiceTest, ReceivedCallsAreCounted) {
  EXPECT_EQ(server_->stats().num_calls, 1);  // Hello, of the fixture.
  EXPECT_EQ(Set(ValidSet()), grpc::StatusCode::OK);
  EXPECT_EQ(server_->stats().num_calls, 2);
  // A repeated call and a refused one.
  EXPECT_EQ(Set(ValidSet()), grpc::StatusCode::OK);
  v1::StoreSetRequest foreign = ValidSet();
  foreign.set_server_incarnation(hello_.server_incarnation() + 1);
  EXPECT_EQ(Set(foreign), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(server_->stats().num_calls, 4);

  const auto store = MustConnect(server_->address());
  EXPECT_EQ(server_->stats().num_calls, 5);
  EXPECT_THAT(store->Get("k"), IsOkAndHolds("v"));
  EXPECT_THAT(store->Wait(std::vector<std::string>{"k"}), IsOk());
  EXPECT_THAT(store->Check(std::vector<std::string>{"k"}), IsOkAndHolds(true));
  EXPECT_THAT(store->NumKeys(), IsOkAndHolds(1));
  EXPECT_THAT(store->Add("sum", 1), IsOkAndHolds(1));
  EXPECT_EQ(server_->stats().num_calls, 10);
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

TEST_F(StoreServiceTest, BadWatchesAreRefused) {
  const auto watch = [&](const std::vector<std::string>& keys) {
    v1::StoreAwaitChangeRequest request;
    request.set_server_incarnation(hello_.server_incarnation());
    for (const std::string& key : keys) {
      request.add_keys()->set_key(key);
      request.mutable_keys()->rbegin()->set_known("");
    }
    grpc::ClientContext context;
    v1::StoreAwaitChangeReply reply;
    return stub_->AwaitChange(&context, request, &reply).error_code();
  };
  EXPECT_EQ(watch({}), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(watch({"k", ""}), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(watch({std::string(hello_.max_key_bytes() + 1, 'k')}),
            grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(server_->stats().num_waiting, 0);

  v1::StoreAwaitChangeRequest foreign;
  foreign.add_keys()->set_key("k");
  grpc::ClientContext context;
  v1::StoreAwaitChangeReply reply;
  EXPECT_EQ(stub_->AwaitChange(&context, foreign, &reply).error_code(),
            grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_F(StoreServiceTest, BadLeasesAreRefused) {
  uint64_t sequence = 0;
  const auto set_lease = [&](const std::string& key, uint64_t lifetime_ms) {
    v1::StoreSetLeaseRequest request;
    request.set_server_incarnation(hello_.server_incarnation());
    request.mutable_request_id()->set_client(1);
    request.mutable_request_id()->set_sequence(++sequence);
    request.set_key(key);
    request.set_lifetime_ms(lifetime_ms);
    grpc::ClientContext context;
    v1::StoreSetLeaseReply reply;
    return stub_->SetLease(&context, request, &reply).error_code();
  };
  for (const uint64_t lifetime_ms :
       {uint64_t{0}, uint64_t{99}, uint64_t{86'400'001}, uint64_t{1} << 63,
        ~uint64_t{0}}) {
    EXPECT_EQ(set_lease("k", lifetime_ms), grpc::StatusCode::INVALID_ARGUMENT)
        << lifetime_ms;
  }
  EXPECT_EQ(set_lease("", 1000), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(server_->stats().num_keys, 0);
  EXPECT_EQ(set_lease("k", 100), grpc::StatusCode::OK);
  EXPECT_EQ(set_lease("k", 86'400'000), grpc::StatusCode::OK);
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
