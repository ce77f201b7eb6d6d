#include "rpc/grpc/transport.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "async/future.h"
#include "async/status_matchers.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"
#include "net/credentials.h"
#include "net/test_credentials.h"
#include "rpc/unsent.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

using Reply = absl::StatusOr<std::string>;

async::Future<std::string> Call(Connection& connection, std::string_view path,
                                std::string request,
                                async::MonotonicTime deadline = async::kNever) {
  auto promise = std::make_shared<async::Promise<std::string>>();
  async::Future<std::string> future = promise->future();
  connection.Call(
      path, Payload(std::move(request)), deadline,
      [promise](absl::StatusOr<Payload> reply) {
        promise->Set(reply.ok() ? reply->Flatten() : Reply(reply.status()));
      });
  return future;
}

// The congestion control of each connected TCP socket of this process.
std::vector<std::string> CongestionControls() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  std::vector<std::string> names;
  for (int fd = 0;
       fd < static_cast<int>(std::min<rlim_t>(limit.rlim_cur, 1024)); ++fd) {
    sockaddr_storage peer{};
    socklen_t size = sizeof peer;
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0) {
      continue;
    }
    char name[16] = {};
    socklen_t length = sizeof name;
    if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &length) == 0) {
      names.emplace_back(name, strnlen(name, length));
    }
  }
  return names;
}

// Over the socket, and with the way through memory that begins at it.
class GrpcTransportTest : public testing::TestWithParam<bool> {
 protected:
  // Serves "/t.T/Echo", and "/t.T/Hold", whose calls are kept.
  void Serve(GrpcTransportOptions options = {}) {
    options.same_host = GetParam();
    server_ = std::make_unique<GrpcTransport>(options);
    absl::StatusOr<std::string> address = server_->Listen(
        "127.0.0.1:0", {{.path = "/t.T/Echo",
                         .handler =
                             [](std::unique_ptr<IncomingCall> call) {
                               call->Reply(call->TakeRequest());
                             },
                         .hot = true},
                        {.path = "/t.T/Hold",
                         .handler =
                             [this](std::unique_ptr<IncomingCall> call) {
                               async::MutexLock lock(&mutex_);
                               held_.push_back(std::move(call));
                               changed_.NotifyAll();
                             },
                         .hot = false}});
    ASSERT_THAT(address, IsOk());
    address_ = *address;
    connection_ = *client_.Connect({address_});
  }

  // One call of Echo by a transport of its own.
  absl::StatusOr<std::string> Echo(
      std::shared_ptr<const net::Credentials> credentials,
      const std::string& worker = "") {
    GrpcTransport client({.credentials = std::move(credentials)});
    std::shared_ptr<Connection> connection =
        *client.Connect({.address = address_, .worker = worker});
    return Call(*connection, "/t.T/Echo", "x").Wait();
  }

  void AwaitHeld(size_t count) {
    async::MutexLock lock(&mutex_);
    while (held_.size() < count) changed_.Wait(&mutex_);
  }

  async::Mutex mutex_;
  async::CondVar changed_;
  std::vector<std::unique_ptr<IncomingCall>> held_;
  std::unique_ptr<GrpcTransport> server_;
  GrpcTransport client_{{.same_host = GetParam()}};
  std::string address_;
  std::shared_ptr<Connection> connection_;
};

TEST_P(GrpcTransportTest, MessagesOfManySizesComeBack) {
  Serve();
  for (size_t size : {0, 1, 511, 512, 513, 100'000, 20'000'000}) {
    EXPECT_THAT(Call(*connection_, "/t.T/Echo", std::string(size, 'x')).Wait(),
                IsOkAndHolds(std::string(size, 'x')));
  }
}

TEST_P(GrpcTransportTest, BothEndsOverLoopbackRunUnderReno) {
  Serve();
  ASSERT_THAT(Call(*connection_, "/t.T/Echo", "").Wait(), IsOk());
  EXPECT_THAT(CongestionControls(), ElementsAre("reno", "reno"));
}

TEST_P(GrpcTransportTest, UnknownMethodIsUnimplemented) {
  Serve();
  EXPECT_THAT(Call(*connection_, "/t.T/None", "").Wait(),
              StatusIs(absl::StatusCode::kUnimplemented));
}

TEST_P(GrpcTransportTest, ErrorsKeepTheirPayloads) {
  Serve();
  async::Future<std::string> reply = Call(*connection_, "/t.T/Hold", "");
  AwaitHeld(1);
  absl::Status error = absl::AbortedError("no \xc3\xbc \n");
  error.SetPayload("type.googleapis.com/test", absl::Cord("\x01\x00\x02"));
  held_[0]->Reply(error);
  EXPECT_EQ(reply.Wait().status(), error);
}

TEST_P(GrpcTransportTest, LongErrorsAreCut) {
  Serve();
  async::Future<std::string> reply = Call(*connection_, "/t.T/Hold", "");
  AwaitHeld(1);
  absl::Status error = absl::AbortedError(std::string(100'000, 'x'));
  error.SetPayload("large", absl::Cord(std::string(100'000, 'y')));
  held_[0]->Reply(error);
  EXPECT_THAT(reply.Wait(), StatusIs(absl::StatusCode::kAborted));
}

TEST_P(GrpcTransportTest, DeadlineReachesTheServer) {
  Serve();
  const async::MonotonicTime deadline = async::AddDelay(
      std::chrono::steady_clock::now(), absl::Milliseconds(300));
  async::Future<std::string> reply =
      Call(*connection_, "/t.T/Hold", "", deadline);
  AwaitHeld(1);
  EXPECT_LT(async::TimeBetween(held_[0]->deadline(), deadline),
            absl::Milliseconds(300));
  absl::Notification cancelled;
  Cancellation::Registration registration =
      held_[0]->cancellation()->OnCancel([&] { cancelled.Notify(); });
  EXPECT_THAT(reply.Wait(), StatusIs(absl::StatusCode::kDeadlineExceeded));
  cancelled.WaitForNotification();
}

TEST_P(GrpcTransportTest, CancelReachesTheServer) {
  Serve();
  absl::Notification done;
  const Connection::CallId id = connection_->Call(
      "/t.T/Hold", Payload(), async::kNever,
      [&](absl::StatusOr<Payload> reply) {
        EXPECT_THAT(reply, StatusIs(absl::StatusCode::kCancelled));
        done.Notify();
      });
  AwaitHeld(1);
  absl::Notification cancelled;
  Cancellation::Registration registration =
      held_[0]->cancellation()->OnCancel([&] { cancelled.Notify(); });
  connection_->Cancel(id);
  done.WaitForNotification();
  cancelled.WaitForNotification();
}

TEST_P(GrpcTransportTest, ClosedConnectionGivesItsStatusNowAndLater) {
  Serve();
  async::Future<std::string> waiting = Call(*connection_, "/t.T/Hold", "");
  AwaitHeld(1);
  connection_->Close(absl::UnavailableError("lost"));
  EXPECT_THAT(waiting.Wait(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("lost")));
  EXPECT_FALSE(IsUnsent(waiting.Wait().status()));
  const absl::Status later =
      Call(*connection_, "/t.T/Echo", "").Wait().status();
  EXPECT_THAT(later,
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("lost")));
  EXPECT_TRUE(IsUnsent(later)) << later;
}

TEST_P(GrpcTransportTest, NobodyThereIsUnavailableAtOnce) {
  Serve();
  server_->Shutdown();
  const absl::Status status =
      Call(*connection_, "/t.T/Echo", "").Wait().status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_TRUE(IsUnsent(status)) << status;
}

TEST_P(GrpcTransportTest, RestartedServerIsReachedSoon) {
  Serve();
  ASSERT_THAT(Call(*connection_, "/t.T/Echo", "a").Wait(), IsOk());
  server_->Shutdown();
  ASSERT_THAT(Call(*connection_, "/t.T/Echo", "a").Wait(),
              StatusIs(absl::StatusCode::kUnavailable));
  GrpcTransport again;
  ASSERT_THAT(
      again.Listen(address_, {{.path = "/t.T/Echo",
                               .handler =
                                   [](std::unique_ptr<IncomingCall> call) {
                                     call->Reply(call->TakeRequest());
                                   },
                               .hot = false}}),
      IsOkAndHolds(address_));
  while (!Call(*connection_, "/t.T/Echo", "a").Wait().ok()) {
  }
}

TEST_P(GrpcTransportTest, WaitingCallsDoNotKeepOthersFromStarting) {
  Serve();
  std::vector<async::Future<std::string>> waiting;
  for (int i = 0; i < 600; ++i) {
    waiting.push_back(Call(*connection_, "/t.T/Hold", ""));
  }
  EXPECT_THAT(Call(*connection_, "/t.T/Echo", "through").Wait(),
              IsOkAndHolds("through"));
  AwaitHeld(600);
  for (auto& call : held_) call->Reply(Payload("late"));
  for (auto& reply : waiting) EXPECT_THAT(reply.Wait(), IsOkAndHolds("late"));
}

TEST_P(GrpcTransportTest, DroppedCallsAreAnswered) {
  Serve();
  async::Future<std::string> reply = Call(*connection_, "/t.T/Hold", "");
  AwaitHeld(1);
  held_.clear();
  EXPECT_THAT(reply.Wait(), StatusIs(absl::StatusCode::kUnavailable));
}

TEST_P(GrpcTransportTest, StoppingServerCutsItsCallsOff) {
  Serve();
  async::Future<std::string> reply = Call(*connection_, "/t.T/Hold", "");
  AwaitHeld(1);
  server_->Shutdown();
  EXPECT_TRUE(held_[0]->cancellation()->cancelled());
  EXPECT_FALSE(IsUnsent(reply.Wait().status()));
  EXPECT_THAT(reply.Wait(), StatusIs(absl::StatusCode::kUnavailable));
  // What a handler keeps may outlive the transport.
  server_.reset();
  held_[0]->Reply(Payload("late"));
}

TEST_P(GrpcTransportTest, ShutdownEndsOwnCalls) {
  Serve();
  async::Future<std::string> reply = Call(*connection_, "/t.T/Hold", "");
  AwaitHeld(1);
  client_.Shutdown();
  ASSERT_TRUE(reply.ready());
  EXPECT_THAT(reply.Wait(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(Call(*connection_, "/t.T/Echo", "").Wait(),
              StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(client_.Connect({address_}),
              StatusIs(absl::StatusCode::kCancelled));
}

TEST_P(GrpcTransportTest, MessagesAboveTheLimitSaySo) {
  Serve({.max_message_bytes = 1000});
  EXPECT_THAT(Call(*connection_, "/t.T/Echo", std::string(2000, 'x')).Wait(),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("max_message_bytes")));
  async::Future<std::string> reply = Call(*connection_, "/t.T/Hold", "");
  AwaitHeld(1);
  held_[0]->Reply(Payload(std::string(3000, 'x')));
  EXPECT_THAT(reply.Wait(), StatusIs(absl::StatusCode::kResourceExhausted,
                                     AllOf(HasSubstr("3000"), HasSubstr("1000"),
                                           HasSubstr("max_message_bytes"))));
  GrpcTransport small({.max_message_bytes = 1000});
  std::shared_ptr<Connection> connection = *small.Connect({address_});
  EXPECT_THAT(Call(*connection, "/t.T/Echo", std::string(2000, 'x')).Wait(),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("2000"), HasSubstr("1000"))));
}

TEST_P(GrpcTransportTest, CompressedMessagesAreRefused) {
  Serve();
  ::grpc::ChannelArguments arguments;
  arguments.SetCompressionAlgorithm(GRPC_COMPRESS_GZIP);
  ::grpc::GenericStub stub(::grpc::CreateCustomChannel(
      address_, ::grpc::InsecureChannelCredentials(), arguments));
  ::grpc::ClientContext context;
  ::grpc::CompletionQueue queue;
  const ::grpc::Slice slice(std::string(100'000, 'x'));
  auto reader = stub.PrepareUnaryCall(&context, "/t.T/Echo",
                                      ::grpc::ByteBuffer(&slice, 1), &queue);
  reader->StartCall();
  ::grpc::ByteBuffer reply;
  ::grpc::Status status;
  reader->Finish(&reply, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  ASSERT_TRUE(queue.Next(&tag, &ok));
  EXPECT_EQ(status.error_code(), ::grpc::StatusCode::UNIMPLEMENTED);
  queue.Shutdown();
  EXPECT_FALSE(queue.Next(&tag, &ok));
}

TEST_P(GrpcTransportTest, OnlyLoopbackIsServed) {
  for (const char* address :
       {"0.0.0.0:0", "[::]:0", "10.0.0.1:0", "example.com:80",
        "127.0.0.1.example.com:80", "127.1.2.3.4:1", ":0", "", "*:1"}) {
    GrpcTransport transport;
    EXPECT_THAT(transport.Listen(address, {}),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         AllOf(HasSubstr("loopback"),
                               HasSubstr("allow_insecure_network"))))
        << address;
  }
}

TEST_P(GrpcTransportTest, OtherAddressesAreServedWithTlsOrKnowingly) {
  net::TestAuthority authority;
  GrpcTransport encrypted({.credentials = authority.Make("ps0")});
  EXPECT_THAT(encrypted.Listen("0.0.0.0:0", {}), IsOk());
  GrpcTransport open({.allow_insecure_network = true});
  testing::internal::CaptureStderr();
  EXPECT_THAT(open.Listen("0.0.0.0:0", {}), IsOk());
  open.Shutdown();
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("WARNING"));
}

TEST_P(GrpcTransportTest, TlsProvesBothEnds) {
  net::TestAuthority authority;
  Serve({.credentials = authority.Make("ps0")});
  EXPECT_THAT(Echo(authority.Make("w1"), "ps0"), IsOkAndHolds("x"));
  // What took the address of the worker that is wanted.
  EXPECT_THAT(Echo(authority.Make("w1"), "ps1"),
              StatusIs(absl::StatusCode::kUnauthenticated,
                       AllOf(HasSubstr("hawser://default/ps0"),
                             HasSubstr("hawser://default/ps1"))));
}

TEST_P(GrpcTransportTest, TlsRefusesOtherAuthorities) {
  net::TestAuthority authority;
  net::TestAuthority other;
  Serve({.credentials = authority.Make("ps0")});
  EXPECT_THAT(
      Echo(other.Make("w1"), "ps0"),
      StatusIs(absl::StatusCode::kUnauthenticated, HasSubstr("handshake")));
  EXPECT_THAT(Echo(nullptr), StatusIs(absl::StatusCode::kUnavailable));
}

TEST_P(GrpcTransportTest, CallerIsWhoItsCertificateSays) {
  net::TestAuthority authority;
  Serve({.credentials = authority.Make("ps0")});
  GrpcTransport client({.credentials = authority.Make("w1")});
  std::shared_ptr<Connection> connection =
      *client.Connect({.address = address_, .worker = "ps0"});
  async::Future<std::string> reply = Call(*connection, "/t.T/Hold", "");
  AwaitHeld(1);
  EXPECT_THAT(held_[0]->caller(), IsOkAndHolds(testing::Optional(net::Identity{
                                      .job = "default", .worker = "w1"})));
  held_[0]->Reply(Payload("done"));
  EXPECT_THAT(reply.Wait(), IsOkAndHolds("done"));
}

TEST_P(GrpcTransportTest, TokenIsWantedOfEachCall) {
  net::TestAuthority files;
  const auto with_token = [&](char digit) {
    net::CredentialsOptions options;
    options.token_path = files.Write("token", std::string(64, digit));
    return *net::Credentials::Create(options, std::nullopt);
  };
  Serve({.credentials = with_token('a')});
  EXPECT_THAT(Echo(with_token('a')), IsOkAndHolds("x"));
  EXPECT_THAT(
      Echo(with_token('b')),
      StatusIs(absl::StatusCode::kUnauthenticated,
               AllOf(HasSubstr("not the job's"), Not(HasSubstr("bbbb")))));
  EXPECT_THAT(Echo(nullptr), StatusIs(absl::StatusCode::kUnauthenticated,
                                      HasSubstr("no token")));
}

TEST_P(GrpcTransportTest, BusyPortIsAnError) {
  Serve();
  GrpcTransport second;
  EXPECT_THAT(
      second.Listen(address_,
                    {{.path = "/t.T/Echo", .handler = {}, .hot = false}}),
      StatusIs(absl::StatusCode::kUnavailable,
               AllOf(HasSubstr(address_), HasSubstr("in use"))));
}

TEST_P(GrpcTransportTest, UnixSocketsWork) {
  // A socket's path is short.
  char directory[] = "/tmp/hawser_XXXXXX";
  ASSERT_NE(mkdtemp(directory), nullptr);
  const std::string address = absl::StrCat("unix:", directory, "/socket");
  GrpcTransport server;
  ASSERT_THAT(
      server.Listen(address, {{.path = "/t.T/Echo",
                               .handler =
                                   [](std::unique_ptr<IncomingCall> call) {
                                     call->Reply(call->TakeRequest());
                                   },
                               .hot = false}}),
      IsOkAndHolds(address));
  std::shared_ptr<Connection> connection = *client_.Connect({address});
  EXPECT_THAT(Call(*connection, "/t.T/Echo", "x").Wait(), IsOkAndHolds("x"));
  server.Shutdown();
  EXPECT_EQ(rmdir(directory), 0);
}

std::string WayName(const testing::TestParamInfo<bool>& way) {
  return way.param ? "SameHost" : "Socket";
}

INSTANTIATE_TEST_SUITE_P(Ways, GrpcTransportTest, testing::Bool(), WayName);

}  // namespace
}  // namespace hawser::rpc
