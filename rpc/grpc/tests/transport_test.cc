#include "rpc/grpc/transport.h"

#include <stdlib.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "async/future.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "grpcpp/support/channel_arguments.h"
#include "gtest/gtest.h"
#include "rpc/errors/not_sent.h"
#include "rpc/testing/echo_server.h"
#include "rpc/testing/raw_client.h"
#include "rpc/transport/payload.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

// How calls travel: each as a call of gRPC, combined into a call stream, or
// through shared memory.
enum class Way { kSocket, kCallStream, kSameHost };

class GrpcTransportTest : public testing::TestWithParam<Way> {
 protected:
  void Serve(GrpcTransportOptions options = {}) {
    options.same_host = same_host_;
    const bool may_stream = options.max_message_bytes >= size_t{1} << 20;
    server_ = std::make_unique<EchoServer>(std::move(options));
    connection_ = *client_.Connect({server_->address()});
    AwaitConnected(*connection_);
    if (GetParam() == Way::kCallStream && may_stream) {
      AwaitCallStream(*server_, *connection_);
    }
  }

  const bool same_host_ = GetParam() == Way::kSameHost;
  std::unique_ptr<EchoServer> server_;
  GrpcTransport client_{{.same_host = same_host_}};
  std::shared_ptr<Connection> connection_;
};

TEST_P(GrpcTransportTest, MessagesOfManySizesRoundTrip) {
  Serve();
  for (size_t size : {0, 1, 511, 512, 513, 100'000, 20'000'000}) {
    EXPECT_THAT(
        Call(*connection_, EchoServer::kEcho, std::string(size, 'x')).Wait(),
        IsOkAndHolds(std::string(size, 'x')));
  }
}

TEST_P(GrpcTransportTest, UnknownMethodIsUnimplemented) {
  Serve();
  EXPECT_THAT(Call(*connection_, "/t.T/None", "").Wait(),
              StatusIs(absl::StatusCode::kUnimplemented));
}

TEST_P(GrpcTransportTest, ErrorsKeepTheirPayloads) {
  Serve();
  async::Future<std::string> reply = Call(*connection_, EchoServer::kHold, "");
  server_->AwaitHeld(1);
  absl::Status error = absl::AbortedError("no \xc3\xbc \n");
  error.SetPayload("type.googleapis.com/test", absl::Cord("\x01\x00\x02"));
  server_->held()[0]->Reply(error);
  EXPECT_EQ(reply.Wait().status(), error);
}

TEST_P(GrpcTransportTest, LongErrorsAreTruncated) {
  Serve();
  async::Future<std::string> reply = Call(*connection_, EchoServer::kHold, "");
  server_->AwaitHeld(1);
  absl::Status error = absl::AbortedError(std::string(100'000, 'x'));
  error.SetPayload("large", absl::Cord(std::string(100'000, 'y')));
  server_->held()[0]->Reply(error);
  EXPECT_THAT(reply.Wait(), StatusIs(absl::StatusCode::kAborted));
}

TEST_P(GrpcTransportTest, DeadlineReachesTheServer) {
  async::MonotonicTime deadline;
  async::Future<std::string> reply;
  do {
    // The deadline may pass before the call arrives.
    Serve();
    deadline = async::AddDelay(std::chrono::steady_clock::now(),
                               absl::Milliseconds(300));
    reply = Call(*connection_, EchoServer::kHold, "", deadline);
  } while (!server_->AwaitHeldUnlessEnded(reply));
  EXPECT_LT(async::TimeBetween(server_->held()[0]->deadline(), deadline),
            absl::Milliseconds(300));
  absl::Notification cancelled;
  Cancellation::Registration registration =
      server_->held()[0]->cancellation()->OnCancel([&] { cancelled.Notify(); });
  EXPECT_THAT(reply.Wait(), StatusIs(absl::StatusCode::kDeadlineExceeded));
  cancelled.WaitForNotification();
}

TEST_P(GrpcTransportTest, CancelReachesTheServer) {
  Serve();
  absl::Notification done;
  const Connection::CallId id = connection_->Call(
      EchoServer::kHold, Payload(), async::kNever,
      [&](absl::StatusOr<Payload> reply) {
        EXPECT_THAT(reply, StatusIs(absl::StatusCode::kCancelled));
        done.Notify();
      });
  server_->AwaitHeld(1);
  absl::Notification cancelled;
  Cancellation::Registration registration =
      server_->held()[0]->cancellation()->OnCancel([&] { cancelled.Notify(); });
  connection_->Cancel(id);
  done.WaitForNotification();
  cancelled.WaitForNotification();
}

TEST_P(GrpcTransportTest, ClosedConnectionReturnsItsStatusNowAndLater) {
  Serve();
  async::Future<std::string> waiting =
      Call(*connection_, EchoServer::kHold, "");
  server_->AwaitHeld(1);
  connection_->Close(absl::UnavailableError("lost"));
  EXPECT_THAT(waiting.Wait(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("lost")));
  EXPECT_FALSE(IsNotSent(waiting.Wait().status()));
  const absl::Status later =
      Call(*connection_, EchoServer::kEcho, "").Wait().status();
  EXPECT_THAT(later,
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("lost")));
  EXPECT_TRUE(IsNotSent(later)) << later;
}

TEST_P(GrpcTransportTest, UnreachableServerIsUnavailableAtOnce) {
  Serve();
  server_->transport().Shutdown();
  // An existing connection may send the call before it breaks.
  connection_ = *client_.Connect({server_->address()});
  const absl::Status status =
      Call(*connection_, EchoServer::kEcho, "").Wait().status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_TRUE(IsNotSent(status)) << status;
}

TEST_P(GrpcTransportTest, RestartedServerIsReachedSoon) {
  Serve();
  ASSERT_THAT(Call(*connection_, EchoServer::kEcho, "a").Wait(), IsOk());
  server_->transport().Shutdown();
  ASSERT_THAT(Call(*connection_, EchoServer::kEcho, "a").Wait(),
              StatusIs(absl::StatusCode::kUnavailable));
  EchoServer again({}, server_->address());
  ASSERT_EQ(again.address(), server_->address());
  while (!Call(*connection_, EchoServer::kEcho, "a").Wait().ok()) {
  }
}

TEST_P(GrpcTransportTest, WaitingCallsDoNotKeepOthersFromStarting) {
  Serve();
  std::vector<async::Future<std::string>> waiting;
  for (int i = 0; i < 600; ++i) {
    waiting.push_back(Call(*connection_, EchoServer::kHold, ""));
  }
  EXPECT_THAT(Call(*connection_, EchoServer::kEcho, "through").Wait(),
              IsOkAndHolds("through"));
  server_->AwaitHeld(600);
  for (auto& call : server_->held()) call->Reply(Payload("late"));
  for (auto& reply : waiting) EXPECT_THAT(reply.Wait(), IsOkAndHolds("late"));
}

TEST_P(GrpcTransportTest, DroppedCallsFail) {
  Serve();
  async::Future<std::string> reply = Call(*connection_, EchoServer::kHold, "");
  server_->AwaitHeld(1);
  server_->held().clear();
  EXPECT_THAT(reply.Wait(), StatusIs(absl::StatusCode::kUnavailable));
}

TEST_P(GrpcTransportTest, StoppingServerAbortsItsCalls) {
  Serve();
  async::Future<std::string> reply = Call(*connection_, EchoServer::kHold, "");
  server_->AwaitHeld(1);
  server_->transport().Shutdown();
  EXPECT_TRUE(server_->held()[0]->cancellation()->cancelled());
  EXPECT_FALSE(IsNotSent(reply.Wait().status()));
  EXPECT_THAT(reply.Wait(), StatusIs(absl::StatusCode::kUnavailable));
  // Calls kept by a handler may outlive the transport.
  auto held = std::move(server_->held());
  server_.reset();
  held[0]->Reply(Payload("late"));
}

TEST_P(GrpcTransportTest, ShutdownEndsOwnCalls) {
  Serve();
  async::Future<std::string> reply = Call(*connection_, EchoServer::kHold, "");
  server_->AwaitHeld(1);
  client_.Shutdown();
  ASSERT_TRUE(reply.ready());
  EXPECT_THAT(reply.Wait(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(Call(*connection_, EchoServer::kEcho, "").Wait(),
              StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(client_.Connect({server_->address()}),
              StatusIs(absl::StatusCode::kCancelled));
}

TEST_P(GrpcTransportTest, MessagesAboveTheLimitAreNamedErrors) {
  Serve({.max_message_bytes = 1000});
  EXPECT_THAT(
      Call(*connection_, EchoServer::kEcho, std::string(2000, 'x')).Wait(),
      StatusIs(absl::StatusCode::kResourceExhausted,
               HasSubstr("max_message_bytes")));
  async::Future<std::string> reply = Call(*connection_, EchoServer::kHold, "");
  server_->AwaitHeld(1);
  server_->held()[0]->Reply(Payload(std::string(3000, 'x')));
  EXPECT_THAT(reply.Wait(), StatusIs(absl::StatusCode::kResourceExhausted,
                                     AllOf(HasSubstr("3000"), HasSubstr("1000"),
                                           HasSubstr("max_message_bytes"))));
  GrpcTransport small({.max_message_bytes = 1000});
  std::shared_ptr<Connection> connection = *small.Connect({server_->address()});
  EXPECT_THAT(
      Call(*connection, EchoServer::kEcho, std::string(2000, 'x')).Wait(),
      StatusIs(absl::StatusCode::kResourceExhausted,
               AllOf(HasSubstr("2000"), HasSubstr("1000"))));
}

TEST_P(GrpcTransportTest, CompressedMessagesAreRefused) {
  Serve();
  ::grpc::ChannelArguments arguments;
  arguments.SetCompressionAlgorithm(GRPC_COMPRESS_GZIP);
  RawClient client({.arguments = arguments});
  EXPECT_THAT(client.Send({.address = server_->address()}, EchoServer::kEcho,
                          Payload(std::string(100'000, 'x'))),
              StatusIs(absl::StatusCode::kUnimplemented));
}

TEST_P(GrpcTransportTest, BusyPortIsAnError) {
  Serve();
  GrpcTransport second;
  EXPECT_THAT(
      second.Listen(server_->address(),
                    {{.path = EchoServer::kEcho, .handler = {}, .hot = false}}),
      StatusIs(absl::StatusCode::kUnavailable,
               AllOf(HasSubstr(server_->address()), HasSubstr("in use"))));
}

TEST_P(GrpcTransportTest, UnixSocketsWork) {
  // The length of a socket's path is limited.
  char directory[] = "/tmp/hawser_XXXXXX";
  ASSERT_NE(mkdtemp(directory), nullptr);
  const std::string address = absl::StrCat("unix:", directory, "/socket");
  EchoServer server({}, address);
  ASSERT_EQ(server.address(), address);
  std::shared_ptr<Connection> connection = *client_.Connect({address});
  AwaitConnected(*connection);
  EXPECT_THAT(Call(*connection, EchoServer::kEcho, "x").Wait(),
              IsOkAndHolds("x"));
  server.transport().Shutdown();
  EXPECT_EQ(rmdir(directory), 0);
}

std::string WayName(const testing::TestParamInfo<Way>& way) {
  switch (way.param) {
    case Way::kSocket:
      return "Socket";
    case Way::kCallStream:
      return "CallStream";
    case Way::kSameHost:
      return "SameHost";
  }
  return "";
}

INSTANTIATE_TEST_SUITE_P(Ways, GrpcTransportTest,
                         testing::Values(Way::kSocket, Way::kCallStream,
                                         Way::kSameHost),
                         WayName);

}  // namespace
}  // namespace hawser::rpc
