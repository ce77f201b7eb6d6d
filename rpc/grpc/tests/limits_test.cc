// Tests that misbehaving peers cannot keep a server from serving others.

#include "rpc/grpc/limits.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "net/server/held_connections.h"
#include "net/testing/raw_http2.h"
#include "net/testing/test_credentials.h"
#include "rpc/grpc/transport.h"
#include "rpc/testing/echo_server.h"
#include "rpc/testing/raw_client.h"
#include "rpc/transport/payload.h"
#include "telemetry/process_memory.h"

#ifdef __SANITIZE_ADDRESS__
// Tests await the return of memory, of which ASan otherwise keeps 256 MiB.
// NOLINTNEXTLINE(bugprone-reserved-identifier)
extern "C" const char* __asan_default_options() {
  return "quarantine_size_mb=32";
}
#endif

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::hawser::net::CallHeaders;
using ::hawser::net::Frame;
using ::hawser::net::FrameType;
using ::hawser::net::HeaderBlock;
using ::hawser::net::kEndHeaders;
using ::hawser::net::kEndStream;
using ::hawser::net::RawHttp2;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kEnhanceYourCalm = 11;

// The last frame of a call's request, which is an empty message.
Frame EmptyRequest(uint32_t stream) {
  return {.type = FrameType::kData,
          .flags = kEndStream,
          .stream = stream,
          .payload = std::string(5, '\0')};
}

class GrpcLimitsTest : public testing::Test {
 protected:
  void Serve(GrpcTransportOptions options) {
    // These tests are about the socket.
    options.same_host = false;
    server_ = std::make_unique<EchoServer>(std::move(options));
    address_ = server_->address();
  }

  std::shared_ptr<Connection> Connect(const std::string& address) {
    if (!client_.has_value()) client_.emplace();
    std::shared_ptr<Connection> connection =
        *client_->Connect({.address = address});
    AwaitConnected(*connection);
    return connection;
  }
  static absl::StatusOr<std::string> Echo(Connection& connection,
                                          std::string text) {
    return Call(connection, EchoServer::kEcho, std::move(text),
                std::chrono::steady_clock::now() + std::chrono::seconds(30))
        .Wait();
  }

  // Makes a call with additional metadata; returns its status.
  absl::Status EchoWithHeader(const std::string& name,
                              const std::string& value) {
    RawClient client({.metadata = {{name, value}}});
    return client.Send({.address = address_}, EchoServer::kEcho, Payload("x"))
        .status();
  }

  // Its threads may read for the server, too.
  std::optional<GrpcTransport> client_;
  std::unique_ptr<EchoServer> server_;
  std::string address_;
};

TEST_F(GrpcLimitsTest, AnAddressHasALimitedNumberOfConnections) {
  Serve({.limits = {.max_connections_per_address = 2}});
  Frame frame;
  RawHttp2 first(address_);
  // Silent ones are closed after a while.
  ASSERT_TRUE(first.SendPreface());
  ASSERT_TRUE(first.Await(FrameType::kSettings, frame));
  {
    RawHttp2 second(address_);
    ASSERT_TRUE(second.SendPreface());
    ASSERT_TRUE(second.Await(FrameType::kSettings, frame));
    testing::internal::CaptureStderr();
    for (int i = 0; i < 2; ++i) {
      RawHttp2 third(address_);
      EXPECT_TRUE(third.AwaitClosed());
      EXPECT_FALSE(third.Await(FrameType::kSettings, frame));
    }
    // Logged once, before the last refusal is visible.
    const std::string told = testing::internal::GetCapturedStderr();
    EXPECT_THAT(told, HasSubstr("1 refused and 2 accepted so far, 2 of them "
                                "open"));
    EXPECT_THAT(told, Not(HasSubstr("2 refused")));
    EXPECT_EQ(server_->transport().DebugNumbers(),
              (std::map<std::string, int64_t>{{"connections_accepted", 2},
                                              {"connections_refused", 2},
                                              {"connections_closed", 0},
                                              {"call_streams_accepted", 0},
                                              {"call_stream_calls", 0}}));
  }
  // One connection was closed, which the server notices a little later.
  bool served = false;
  while (!served) {
    RawHttp2 fourth(address_);
    served = fourth.Await(FrameType::kSettings, frame);
  }
}

TEST_F(GrpcLimitsTest, AllAddressesTogetherHaveALimit) {
  Serve({.limits = {.max_connections = 1}});
  Frame frame;
  RawHttp2 first(address_);
  ASSERT_TRUE(first.SendPreface());
  ASSERT_TRUE(first.Await(FrameType::kSettings, frame));
  RawHttp2 second(address_);
  EXPECT_FALSE(second.Await(FrameType::kSettings, frame));
}

TEST_F(GrpcLimitsTest, ASilentConnectionIsClosed) {
  Serve({.limits = {.handshake_timeout = absl::Milliseconds(200)}});
  RawHttp2 silent(address_);
  EXPECT_TRUE(silent.AwaitClosed());
}

TEST_F(GrpcLimitsTest, ManyPingsEndTheConnection) {
  Serve({});
  RawHttp2 peer(address_);
  ASSERT_TRUE(peer.SendPreface());
  for (int i = 0; i < 8; ++i) {
    peer.Send({.type = FrameType::kPing, .payload = "12345678"});
  }
  Frame frame;
  ASSERT_TRUE(peer.Await(FrameType::kGoAway, frame));
  ASSERT_GE(frame.payload.size(), 8u);
  EXPECT_EQ(frame.payload[7], kEnhanceYourCalm);
}

TEST_F(GrpcLimitsTest, PingsAtTheAllowedRateDoNotEndTheConnection) {
  Serve({.limits = {.min_ping_interval = absl::Milliseconds(1)}});
  RawHttp2 peer(address_);
  ASSERT_TRUE(peer.SendPreface());
  Frame frame;
  ASSERT_TRUE(peer.Await(FrameType::kSettings, frame));
  const auto interval = std::chrono::milliseconds(2);
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(peer.Send({.type = FrameType::kPing, .payload = "12345678"}));
    ASSERT_TRUE(peer.Await(FrameType::kPing, frame)) << i;
    // Measured from the reply, at which time the server has read the ping.
    const auto next = std::chrono::steady_clock::now() + interval;
    while (std::chrono::steady_clock::now() < next) {
    }
  }
}

TEST_F(GrpcLimitsTest, LongHeadersEndTheirCallAlone) {
  Serve({.limits = {.max_metadata_bytes = 2000}});
  EXPECT_THAT(EchoWithHeader("x", std::string(500, 'x')), IsOk());
  EXPECT_THAT(EchoWithHeader("x", std::string(5000, 'x')),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST_F(GrpcLimitsTest, AConnectionTakesALimitedNumberOfCalls) {
  Serve({.limits = {.max_calls_per_connection = 2}});
  RawHttp2 peer(address_);
  ASSERT_TRUE(peer.SendPreface());
  Frame frame;
  ASSERT_TRUE(peer.Await(FrameType::kSettings, frame));
  // Acknowledged.
  ASSERT_TRUE(peer.Send({.type = FrameType::kSettings, .flags = 1}));
  for (uint32_t stream : {1u, 3u, 5u}) {
    peer.Send({.type = FrameType::kHeaders,
               .flags = kEndHeaders,
               .stream = stream,
               .payload = HeaderBlock(CallHeaders("/t.T/Hold"))});
  }
  EXPECT_TRUE(peer.AwaitClosed());
  // Hawser's own callers wait instead.
  const std::shared_ptr<Connection> connection = Connect(address_);
  EXPECT_THAT(Echo(*connection, "x"), IsOkAndHolds("x"));
}

// gRPC does not limit the calls of a client that acknowledges no settings.
TEST_F(GrpcLimitsTest, CallsAreLimitedWithoutAcknowledgement) {
  Serve({});
  const std::shared_ptr<Connection> other = Connect(address_);
  const auto start = std::chrono::steady_clock::now();
  RawHttp2 peer(address_);
  ASSERT_TRUE(peer.SendPreface());
  for (uint32_t i = 0; i < 513; ++i) {
    // No handler sees these calls, whose requests do not arrive.
    ASSERT_TRUE(peer.Send({.type = FrameType::kHeaders,
                           .flags = kEndHeaders,
                           .stream = 2 * i + 1,
                           .payload = HeaderBlock(CallHeaders("/t.T/Hold"))}));
  }
  EXPECT_TRUE(peer.AwaitClosed());
  EXPECT_THAT(Echo(*other, "x"), IsOkAndHolds("x"));
  EXPECT_EQ(server_->transport().DebugNumbers().at("connections_closed"), 1);
  // Its next connection waits.
  RawHttp2 again(address_);
  ASSERT_TRUE(again.SendPreface());
  Frame frame;
  EXPECT_TRUE(again.Await(FrameType::kSettings, frame));
  EXPECT_GE(std::chrono::steady_clock::now() - start,
            absl::ToChronoMilliseconds(net::HeldConnections::kFirstWait));
}

// As many calls as allowed stay open.
TEST_F(GrpcLimitsTest, AllowedCallsStayOpen) {
  Serve({});
  RawHttp2 peer(address_);
  ASSERT_TRUE(peer.SendPreface());
  for (uint32_t i = 0; i < 256; ++i) {
    ASSERT_TRUE(peer.SendCall(2 * i + 1, EchoServer::kHold, "x"));
  }
  server_->AwaitHeld(256);
  // Examined at least once more.
  RawHttp2 worse(address_);
  ASSERT_TRUE(worse.SendPreface());
  for (uint32_t i = 0; i < 513; ++i) {
    ASSERT_TRUE(worse.SendCall(2 * i + 1, EchoServer::kHold, "x"));
  }
  EXPECT_TRUE(worse.AwaitClosed());
  EXPECT_EQ(server_->transport().DebugNumbers().at("connections_closed"), 1);
}

// A header block that never ends: gRPC keeps 60 bytes for each of its bytes.
TEST_F(GrpcLimitsTest, MemoryOfEndlessHeadersIsLimited) {
  const size_t before = telemetry::ResidentBytes();
  Serve({.limits = {.memory_watermark_bytes = before + (size_t{64} << 20)}});
  const std::shared_ptr<Connection> other = Connect(address_);
  RawHttp2 peer(address_);
  ASSERT_TRUE(peer.SendPreface());
  // Adds "x" to the table of headers, as its entry 62, and refers to it.
  ASSERT_TRUE(peer.Send({.type = FrameType::kHeaders,
                         .stream = 1,
                         .payload = HeaderBlock(CallHeaders("/t.T/Echo")) +
                                    std::string("\x40\x01x\x00", 4)}));
  const Frame references = {.type = FrameType::kContinuation,
                            .stream = 1,
                            .payload = std::string(16'000, '\xbe')};
  while (peer.Send(references)) {
    EXPECT_THAT(Echo(*other, "x"), IsOkAndHolds("x"));
    // It grows by 300 MiB between two looks at it.
    ASSERT_LT(telemetry::ResidentBytes(), before + (size_t{2} << 30));
  }
  EXPECT_EQ(server_->transport().DebugNumbers().at("connections_closed"), 1);
  // The memory comes back, without another call of the method: those of `other`
  // are sent over a call stream.
  while (telemetry::ResidentBytes() > before + (size_t{128} << 20)) {
    EXPECT_THAT(Echo(*other, "x"), IsOkAndHolds("x"));
  }
}

// gRPC reads from a connection as long as bytes arrive, in the thread that
// began. Frames of type 2 have no effect, but must be parsed.
TEST_F(GrpcLimitsTest, AClientThatNeverPausesKeepsNoThreadForItself) {
  std::string frames;
  for (int i = 0; i < 10'000; ++i) {
    frames += std::string_view("\0\0\5\2\0\0\0\0\1\0\0\0\0\0", 14);
  }
  // Several times: now and then gRPC reads in a thread of its own, on which
  // other connections depend too. No thread of the server can relieve it.
  constexpr int kRounds = 5;
  int num_served = 0;
  for (int round = 0; round < kRounds; ++round) {
    // It may send 1.1 GB before it is cut off, which takes seconds. Threads are
    // relieved after less than one.
    Serve({.max_message_bytes = size_t{512} << 20,
           .limits = {.max_whole_request_bytes = size_t{512} << 20}});
    // A call of the server's own transport: threads of any other in the process
    // might read for the client, and only a transport that serves relieves its
    // threads.
    const std::shared_ptr<Connection> other =
        *server_->transport().Connect({.address = address_});
    AwaitConnected(*other);
    // This thread must not poll for its reply: gRPC might keep it.
    const auto echo = [&other] {
      absl::Notification done;
      absl::StatusOr<std::string> reply;
      Call(*other, EchoServer::kEcho, "x", async::kNever)
          .OnReady([&](const absl::StatusOr<std::string>& result) {
            reply = result;
            done.Notify();
          });
      done.WaitForNotification();
      return reply;
    };
    ASSERT_THAT(echo(), IsOkAndHolds("x"));
    // Numbers of repetitions of `frames` that the server has taken.
    std::atomic<int> sent = 0;
    std::atomic<bool> enough = false;
    std::atomic<bool> closed = false;
    std::thread sender([&] {
      RawHttp2 peer(address_);
      EXPECT_TRUE(peer.SendPreface());
      // The thread that has passed the connection to gRPC is free again.
      Frame frame;
      EXPECT_TRUE(peer.Await(FrameType::kSettings, frame));
      while (!enough && peer.SendBytes(frames)) ++sent;
      closed = !enough;
    });
    // Served meanwhile. By the 100th, more than the buffers of a socket hold,
    // gRPC has begun to read them.
    bool served = false;
    while (!served && !closed) {
      const bool begun = sent >= 100;
      EXPECT_THAT(echo(), IsOkAndHolds("x"));
      served = begun && !closed;
    }
    if (served) ++num_served;
    // The last time until its connection is closed, because its frames belong
    // to no call.
    enough = round + 1 < kRounds;
    sender.join();
    EXPECT_EQ(server_->transport().DebugNumbers().at("connections_closed"),
              closed ? 1 : 0);
  }
  EXPECT_GE(num_served, 3);
}

TEST_F(GrpcLimitsTest, MemoryOfMessagesIsLimited) {
  Serve({.limits = {.memory_quota_bytes = 4 << 20}});
  const std::shared_ptr<Connection> connection = Connect(address_);
  EXPECT_THAT(Echo(*connection, std::string(64 << 20, 'x')),
              StatusIs(absl::StatusCode::kResourceExhausted));
  while (!Echo(*connection, "x").ok()) {
  }
}

// Replies that a client does not read use up its half of the quota.
TEST_F(GrpcLimitsTest, MemoryOfUnreadRepliesIsLimited) {
  constexpr size_t kReplyBytes = size_t{1} << 20;
  Serve({.max_message_bytes = kReplyBytes,
         .limits = {.memory_quota_bytes = 8 * kReplyBytes}});
  const std::shared_ptr<Connection> other = Connect(address_);
  RawHttp2 peer(address_);
  ASSERT_TRUE(peer.SendPreface(/*reads_nothing=*/true));
  // Waits for the error of a call, which needs no DATA frames.
  const auto error_of = [&](uint32_t stream) {
    Frame frame;
    do {
      EXPECT_TRUE(peer.Await(FrameType::kHeaders, frame));
    } while (frame.stream != stream && !testing::Test::HasFailure());
    return frame.payload;
  };
  for (uint32_t i = 0; i < 5; ++i) {
    ASSERT_TRUE(peer.SendCall(2 * i + 1, EchoServer::kHold, "x"));
  }
  server_->AwaitHeld(5);
  for (const std::unique_ptr<IncomingCall>& call : server_->held()) {
    call->Reply(Payload(std::string(kReplyBytes, 'r')));
  }
  EXPECT_THAT(error_of(9), HasSubstr("the reply of 1048576 bytes is dropped"));
  // A further call is refused before it is served.
  ASSERT_TRUE(peer.SendCall(11, EchoServer::kHold, "x"));
  EXPECT_THAT(error_of(11), HasSubstr("unread replies"));
  EXPECT_EQ(server_->held().size(), 5u);
  EXPECT_THAT(Echo(*other, "x"), IsOkAndHolds("x"));
}

TEST_F(GrpcLimitsTest, CraftedHeadersDoNotEndTheProcess) {
  Serve({});
  const std::shared_ptr<Connection> other = Connect(address_);
  ASSERT_THAT(Echo(*other, "before"), IsOk());
  using Headers = std::vector<std::pair<std::string, std::string>>;
  const auto with = [](const Headers& more) {
    Headers headers = CallHeaders("/t.T/Echo");
    headers.insert(headers.end(), more.begin(), more.end());
    return headers;
  };
  const std::vector<Headers> cases = {
      // Not base64 (CVE-2023-32732).
      with({{"x-bin", "!!!!"}}),
      // Three headers known to crash servers (CVE-2023-1428).
      {{":method", "POST"},
       {":scheme", "x"},
       {":path", "/t.T/Echo"},
       {"te", "x"},
       {"grpclb_client_stats", "x"}},
      with({{"te", "x"}, {"grpclb_client_stats", "x"}}),
      {{":scheme", "x"}, {"te", "x"}, {":path", ""}},
      with({{"grpc-timeout", "99999999999999999999H"}}),
      with({{"grpc-timeout", "99999999H"}}),
      with({{"grpc-encoding", "gzip"}, {"grpc-accept-encoding", "\xff"}}),
      with({{"grpc-status-details-bin", "%%%"}}),
      with({{"", ""}}),
      with({{":path", "/t.T/Echo"}, {":path", "/t.T/Hold"}}),
      {{"content-length", "-1"}},
      {},
  };
  for (const Headers& headers : cases) {
    RawHttp2 peer(address_);
    ASSERT_TRUE(peer.SendPreface());
    peer.Send({.type = FrameType::kHeaders,
               .flags = kEndHeaders,
               .stream = 1,
               .payload = HeaderBlock(headers)});
    peer.Send(EmptyRequest(1));
    EXPECT_THAT(Echo(*other, "still"), IsOkAndHolds("still"));
  }
}

TEST_F(GrpcLimitsTest, DeadlinesBeyondTheClockNeverPass) {
  Serve({});
  RawHttp2 peer(address_);
  ASSERT_TRUE(peer.SendPreface());
  auto headers = CallHeaders(EchoServer::kHold);
  // 11,000 years, the maximum of gRPC's protocol.
  headers.emplace_back("grpc-timeout", "99999999H");
  peer.Send({.type = FrameType::kHeaders,
             .flags = kEndHeaders,
             .stream = 1,
             .payload = HeaderBlock(headers)});
  peer.Send(EmptyRequest(1));
  server_->AwaitHeld(1);
  EXPECT_EQ(server_->held()[0]->deadline(), async::kNever);
}

TEST_F(GrpcLimitsTest, OthersAreServedDuringAFloodOfHeaders) {
  Serve({});
  const std::shared_ptr<Connection> other = Connect(address_);
  RawHttp2 peer(address_);
  ASSERT_TRUE(peer.SendPreface());
  peer.Send({.type = FrameType::kHeaders,
             .stream = 1,
             .payload = HeaderBlock(CallHeaders("/t.T/Echo"))});
  // A header of unlimited length (CVE-2023-33953).
  std::string begin(1, '\0');
  begin += "\x01x";
  begin += "\x7f\xff\xff\xff\x7f";
  peer.Send({.type = FrameType::kContinuation, .stream = 1, .payload = begin});
  for (int i = 0; i < 64; ++i) {
    peer.Send({.type = FrameType::kContinuation,
               .stream = 1,
               .payload = std::string(16'000, 'x')});
    ASSERT_THAT(Echo(*other, "x"), IsOkAndHolds("x"));
  }
}

TEST_F(GrpcLimitsTest, WithTlsHttp2NeedsACertificate) {
  net::TestAuthority authority;
  Serve({.credentials = authority.Make("w0")});
  RawHttp2 peer(address_);
  // A flood of headers would start like this. It ends here, since the server
  // does not reply with HTTP/2 settings.
  (void)peer.SendPreface();
  Frame frame;
  EXPECT_FALSE(peer.Await(FrameType::kSettings, frame));
  EXPECT_TRUE(peer.AwaitClosed());
}

TEST_F(GrpcLimitsTest, OthersAreServedDuringAFloodOfResets) {
  Serve({});
  const std::shared_ptr<Connection> other = Connect(address_);
  RawHttp2 peer(address_);
  ASSERT_TRUE(peer.SendPreface());
  // Starts calls and resets them at once (CVE-2023-44487).
  for (uint32_t i = 0; i < 2000; ++i) {
    const uint32_t stream = 2 * i + 1;
    if (!peer.Send({.type = FrameType::kHeaders,
                    .flags = kEndHeaders,
                    .stream = stream,
                    .payload = HeaderBlock(CallHeaders("/t.T/Hold"))}) ||
        !peer.Send({.type = FrameType::kRstStream,
                    .stream = stream,
                    .payload = std::string("\0\0\0\x08", 4)})) {
      break;
    }
  }
  EXPECT_THAT(Echo(*other, "x"), IsOkAndHolds("x"));
}

// Replies to every call with its request, compressed.
class CompressingService final : public ::grpc::CallbackGenericService {
 public:
  ::grpc::ServerGenericBidiReactor* CreateReactor(
      ::grpc::GenericCallbackServerContext* context) override {
    context->set_compression_algorithm(GRPC_COMPRESS_GZIP);
    return new Answer();
  }

 private:
  class Answer final : public ::grpc::ServerGenericBidiReactor {
   public:
    Answer() { StartRead(&message_); }
    void OnReadDone(bool) override {
      StartWriteAndFinish(&message_, {}, ::grpc::Status::OK);
    }
    void OnDone() override { delete this; }

   private:
    ::grpc::ByteBuffer message_;
  };
};

TEST_F(GrpcLimitsTest, CompressedRepliesAreNotDecompressed) {
  CompressingService service;
  ::grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", ::grpc::InsecureServerCredentials(),
                           &port);
  builder.RegisterCallbackGenericService(&service);
  std::unique_ptr<::grpc::Server> server = builder.BuildAndStart();
  const std::shared_ptr<Connection> connection =
      Connect(absl::StrCat("127.0.0.1:", port));
  const absl::StatusOr<std::string> reply =
      Echo(*connection, std::string(100'000, 'x'));
  // gRPC rejects them, unless their status arrived with them.
  if (reply.ok()) {
    EXPECT_LT(reply->size(), 10'000u);
  } else {
    EXPECT_THAT(reply, StatusIs(absl::StatusCode::kUnimplemented));
  }
  client_->Shutdown();
}

TEST(GrpcLimitsOptionsTest, LimitsMustBePositive) {
  EXPECT_THAT(Validate({}), IsOk());
  GrpcTransport transport({.limits = {.max_metadata_bytes = 0}});
  EXPECT_THAT(transport.Listen("127.0.0.1:0", {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("max_metadata_bytes")));
  EXPECT_THAT(Validate({.max_connection_idle = absl::ZeroDuration()}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("max_connection_idle")));
}

}  // namespace
}  // namespace hawser::rpc
