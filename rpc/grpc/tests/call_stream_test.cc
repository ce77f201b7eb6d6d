// Tests of calls that are combined into a stream.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "async/blocking_region.h"
#include "async/clock.h"
#include "async/cpu_relax.h"
#include "async/future.h"
#include "async/mutex.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "grpcpp/support/status.h"
#include "gtest/gtest.h"
#include "proto/call_stream.pb.h"
#include "rpc/grpc/tests/raw_stream.h"
#include "rpc/grpc/transport.h"
#include "rpc/testing/echo_server.h"
#include "rpc/transport/payload.h"
#include "rpc/transport/transport.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr size_t kMiB = size_t{1} << 20;

std::string Pattern(size_t size) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<char>(i * 7 + i / 251);
  }
  return bytes;
}

// Serves any methods. The request of "/t.T/Make" says of how many bytes the
// reply consists, and in how many chunks.
class Server {
 public:
  explicit Server(std::vector<TransportMethod> methods = {},
                  GrpcTransportOptions options = {.same_host = false})
      : transport_(std::move(options)) {
    methods.push_back({"/t.T/Make", [](std::unique_ptr<IncomingCall> call) {
                         call->Reply(Made(*call->TakeRequest().Flatten()));
                       }});
    methods.push_back({"/t.T/Echo", [](std::unique_ptr<IncomingCall> call) {
                         call->Reply(call->TakeRequest());
                       }});
    address_ = transport_.Listen("127.0.0.1:0", std::move(methods)).value();
  }

  GrpcTransport& transport() { return transport_; }
  const std::string& address() const { return address_; }
  int64_t num_stream_calls() {
    return transport_.DebugNumbers()["call_stream_calls"];
  }

  // Returns a connection of `client` with an open stream.
  std::shared_ptr<Connection> Connect(GrpcTransport& client) {
    std::shared_ptr<Connection> connection = *client.Connect({address_});
    AwaitConnected(*connection);
    const int64_t before = num_stream_calls();
    while (num_stream_calls() == before) {
      EXPECT_THAT(Call(*connection, "/t.T/Echo", "x").Wait(), IsOk());
    }
    return connection;
  }

 private:
  static Payload Made(const std::string& request) {
    size_t size = 0;
    size_t chunks = 1;
    const size_t comma = request.find(',');
    EXPECT_TRUE(absl::SimpleAtoi(request.substr(0, comma), &size));
    if (comma != std::string::npos) {
      EXPECT_TRUE(absl::SimpleAtoi(request.substr(comma + 1), &chunks));
    }
    const std::string bytes = Pattern(size);
    Payload payload;
    for (size_t i = 0; i < chunks; ++i) {
      const size_t begin = size * i / chunks;
      payload.Append(bytes.substr(begin, size * (i + 1) / chunks - begin));
    }
    return payload;
  }

  GrpcTransport transport_;
  std::string address_;
};

class CallStreamTest : public testing::Test {
 protected:
  GrpcTransport client_{{.same_host = false}};
};

TEST_F(CallStreamTest, RepliesOfAllSizesArrive) {
  Server server;
  const auto connection = server.Connect(client_);
  const int64_t before = server.num_stream_calls();
  const std::vector<size_t> sizes = {0,         1,        1000,     65'535,
                                     65'536,    65'537,   524'288,  524'289,
                                     1'000'000, 5 * kMiB, 20 * kMiB};
  for (const size_t size : sizes) {
    EXPECT_TRUE(
        Call(*connection, "/t.T/Make", absl::StrCat(size)).Wait().value() ==
        Pattern(size))
        << size;
    EXPECT_TRUE(Call(*connection, "/t.T/Make", absl::StrCat(size, ",7"))
                    .Wait()
                    .value() == Pattern(size))
        << size;
  }
  EXPECT_EQ(server.num_stream_calls() - before,
            static_cast<int64_t>(2 * sizes.size()));
}

TEST_F(CallStreamTest, LongRequestsAreCallsOfTheirOwn) {
  Server server;
  const auto connection = server.Connect(client_);
  const int64_t before = server.num_stream_calls();
  for (const size_t size : {size_t{16'384}, size_t{16'385}, 3 * kMiB}) {
    EXPECT_TRUE(Call(*connection, "/t.T/Echo", Pattern(size)).Wait().value() ==
                Pattern(size));
  }
  EXPECT_EQ(server.num_stream_calls() - before, 1);
}

// The parameter is the number of polling threads.
class PollingThreadsTest : public testing::TestWithParam<int> {};

TEST_P(PollingThreadsTest, ManyCallsInFlightGetTheirReplies) {
  const GrpcTransportOptions options = {.num_polling_threads = GetParam(),
                                        .same_host = false};
  Server server({}, options);
  GrpcTransport client(options);
  const auto connection = server.Connect(client);
  for (int round = 0; round < 5; ++round) {
    std::vector<async::Future<std::string>> replies;
    for (int i = 0; i < 2000; ++i) {
      replies.push_back(
          i % 100 == 0
              ? Call(*connection, "/t.T/Make", absl::StrCat(100'000 + i))
              : Call(*connection, "/t.T/Echo", absl::StrCat(i)));
    }
    for (int i = 0; i < 2000; ++i) {
      EXPECT_TRUE(replies[i].Wait().value() ==
                  (i % 100 == 0 ? Pattern(100'000 + i) : absl::StrCat(i)));
    }
  }
}

// While one thread copies a fragment, another one receives the next.
TEST_P(PollingThreadsTest, LongRepliesInFlightArriveWhole) {
  const GrpcTransportOptions options = {.num_polling_threads = GetParam(),
                                        .same_host = false};
  Server server({}, options);
  GrpcTransport client(options);
  const auto connection = server.Connect(client);
  std::vector<std::thread> callers;
  for (size_t caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&, caller] {
      for (size_t round = 0; round < 5; ++round) {
        const size_t size = (3 + caller) * kMiB + round;
        EXPECT_TRUE(
            Call(*connection, "/t.T/Make", absl::StrCat(size)).Wait().value() ==
            Pattern(size))
            << size;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
}

INSTANTIATE_TEST_SUITE_P(Numbers, PollingThreadsTest, testing::Values(1, 4));

// A short reply overtakes a long one that was sent before it.
TEST_F(CallStreamTest, LongRepliesDoNotDelayShortOnes) {
  async::Mutex mutex;
  std::unique_ptr<IncomingCall> held;
  absl::Notification holds;
  Server server({{"/t.T/Hold",
                  [&](std::unique_ptr<IncomingCall> call) {
                    async::MutexLock lock(&mutex);
                    held = std::move(call);
                    holds.Notify();
                  }},
                 {"/t.T/Both", [&](std::unique_ptr<IncomingCall> call) {
                    call->Reply(Payload(std::string(64 * kMiB, 'x')));
                    async::MutexLock lock(&mutex);
                    held->Reply(Payload("short"));
                  }}});
  const auto connection = server.Connect(client_);
  std::atomic<int> num_ended = 0;
  std::atomic<int> short_rank = 0;
  std::atomic<int> long_rank = 0;
  async::Future<std::string> first = Call(*connection, "/t.T/Hold", "");
  holds.WaitForNotification();
  async::Future<std::string> second = Call(*connection, "/t.T/Both", "");
  absl::Notification both;
  const auto end = [&](std::atomic<int>& rank) {
    rank = ++num_ended;
    if (rank == 2) both.Notify();
  };
  first.OnReady([&](const auto&) { end(short_rank); });
  second.OnReady([&](const auto&) { end(long_rank); });
  both.WaitForNotification();
  EXPECT_EQ(short_rank, 1);
  EXPECT_EQ(long_rank, 2);
  EXPECT_EQ(second.Wait().value().size(), 64 * kMiB);
}

// The memory of a reply that nobody awaits any more is given back.
TEST_F(CallStreamTest, CancelledLongRepliesCostNothing) {
  Server server;
  GrpcTransport client(
      {.limits = {.memory_quota_bytes = 100 * kMiB}, .same_host = false});
  const auto connection = server.Connect(client);
  const std::string request = absl::StrCat(60 * kMiB);
  for (int i = 0; i < 20; ++i) {
    absl::Notification ended;
    const Connection::CallId id = connection->Call(
        "/t.T/Make", Payload(request), async::kNever,
        [&](const absl::StatusOr<Payload>&) { ended.Notify(); });
    // Some are cancelled before the reply begins, some in the middle.
    if (i % 2 == 0) {
      EXPECT_THAT(Call(*connection, "/t.T/Echo", "x").Wait(), IsOk());
    }
    connection->Cancel(id);
    ended.WaitForNotification();
  }
  EXPECT_TRUE(Call(*connection, "/t.T/Make", request).Wait().value() ==
              Pattern(60 * kMiB));
}

TEST_F(CallStreamTest, RepliesAboveALimitAreNamedErrors) {
  Server server({}, {.max_message_bytes = 2 * kMiB, .same_host = false});
  const auto connection = server.Connect(client_);
  EXPECT_THAT(
      Call(*connection, "/t.T/Make", absl::StrCat(3 * kMiB)).Wait(),
      StatusIs(absl::StatusCode::kResourceExhausted,
               AllOf(HasSubstr("2097152"), HasSubstr("max_message_bytes"))));
  GrpcTransport small({.max_message_bytes = kMiB, .same_host = false});
  const auto other = server.Connect(small);
  EXPECT_THAT(
      Call(*other, "/t.T/Make", absl::StrCat(3 * kMiB / 2)).Wait(),
      StatusIs(absl::StatusCode::kResourceExhausted,
               AllOf(HasSubstr("1048576"), HasSubstr("max_message_bytes"))));
  // The stream goes on.
  const int64_t before = server.num_stream_calls();
  EXPECT_THAT(Call(*other, "/t.T/Echo", "x").Wait(), IsOkAndHolds("x"));
  EXPECT_EQ(server.num_stream_calls(), before + 1);
}

// A client that was stopped past a deadline reads what has arrived first.
TEST_F(CallStreamTest, ReplyThatArrivedInTimeIsNotLost) {
  absl::Notification replied;
  Server server({{"/t.T/Reply", [&](std::unique_ptr<IncomingCall> call) {
                    call->Reply(Payload("in time"));
                    replied.Notify();
                  }}});
  const auto connection = server.Connect(client_);
  for (int i = 0; i < 3; ++i) {
    async::Future<std::string> reply;
    absl::Notification resumed;
    // Stops the only polling thread.
    Call(*connection, "/t.T/Echo", "").OnReady([&](const auto&) {
      const async::MonotonicTime deadline = async::AddDelay(
          std::chrono::steady_clock::now(), absl::Milliseconds(500));
      reply = Call(*connection, i == 0 ? "/t.T/Reply" : "/t.T/Echo", "in time",
                   deadline);
      while (async::TimeBetween(deadline, std::chrono::steady_clock::now()) <
             absl::Milliseconds(300)) {
        async::CpuRelax();
      }
      resumed.Notify();
    });
    resumed.WaitForNotification();
    EXPECT_THAT(reply.Wait(), IsOkAndHolds("in time"));
  }
  replied.WaitForNotification();
}

// Calls made in one callback travel in one message.
TEST_F(CallStreamTest, HandlerThatBlocksDelaysNoOtherCall) {
  absl::Notification released;
  Server server({{"/t.T/Block",
                  [&](std::unique_ptr<IncomingCall> call) {
                    async::BlockingRegion blocking;
                    released.WaitForNotification();
                    call->Reply(Payload("released"));
                  }},
                 {"/t.T/Release", [&](std::unique_ptr<IncomingCall> call) {
                    released.Notify();
                    call->Reply(Payload());
                  }}});
  const auto connection = server.Connect(client_);
  std::vector<async::Future<std::string>> replies;
  absl::Notification called;
  Call(*connection, "/t.T/Echo", "").OnReady([&](const auto&) {
    replies.push_back(Call(*connection, "/t.T/Echo", "before"));
    for (int i = 0; i < 3; ++i) {
      replies.push_back(Call(*connection, "/t.T/Block", ""));
    }
    replies.push_back(Call(*connection, "/t.T/Release", ""));
    called.Notify();
  });
  called.WaitForNotification();
  EXPECT_THAT(replies[0].Wait(), IsOkAndHolds("before"));
  for (int i = 1; i <= 3; ++i) {
    EXPECT_THAT(replies[i].Wait(), IsOkAndHolds("released"));
  }
  EXPECT_THAT(replies[4].Wait(), IsOk());
}

// What a handler sends is sent before it waits for the reply.
TEST_F(CallStreamTest, HandlersMayCallOverTheSameStream) {
  std::shared_ptr<Connection> loop;
  Server server(
      {{"/t.T/Recurse", [&](std::unique_ptr<IncomingCall> call) {
          int depth = 0;
          EXPECT_TRUE(absl::SimpleAtoi(*call->TakeRequest().Flatten(), &depth));
          if (depth == 0) {
            call->Reply(Payload("bottom"));
            return;
          }
          async::Future<std::string> reply =
              Call(*loop, "/t.T/Recurse", absl::StrCat(depth - 1));
          call->Reply(Payload(reply.Wait().value()));
        }}});
  loop = server.Connect(server.transport());
  for (int i = 0; i < 20; ++i) {
    EXPECT_THAT(Call(*loop, "/t.T/Recurse", "40").Wait(),
                IsOkAndHolds("bottom"));
  }
  loop.reset();
}

TEST_F(CallStreamTest, DroppedConnectionCancelsItsCalls) {
  EchoServer server({.same_host = false});
  std::shared_ptr<Connection> connection = *client_.Connect({server.address()});
  AwaitConnected(*connection);
  AwaitCallStream(server, *connection);
  const async::Future<std::string> reply =
      Call(*connection, EchoServer::kHold, "");
  server.AwaitHeld(1);
  absl::Notification cancelled;
  Cancellation::Registration registration =
      server.held()[0]->cancellation()->OnCancel([&] { cancelled.Notify(); });
  connection.reset();
  cancelled.WaitForNotification();
  EXPECT_THAT(reply.Wait(), StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(CallStreamTest, StreamIsOpenedAgainAfterItBroke) {
  auto server =
      std::make_unique<EchoServer>(GrpcTransportOptions{.same_host = false});
  const std::string address = server->address();
  std::shared_ptr<Connection> connection = *client_.Connect({address});
  AwaitConnected(*connection);
  AwaitCallStream(*server, *connection);
  const async::Future<std::string> reply =
      Call(*connection, EchoServer::kHold, "");
  server->AwaitHeld(1);
  server.reset();
  EXPECT_THAT(reply.Wait(), StatusIs(absl::StatusCode::kUnavailable,
                                     HasSubstr("shutting down")));
  EchoServer again({.same_host = false}, address);
  while (!Call(*connection, EchoServer::kEcho, "a").Wait().ok()) {
  }
  AwaitCallStream(again, *connection);
}

// What is checked or limited per call of gRPC is not combined.
TEST_F(CallStreamTest, ServersWithLimitsOnCallsHaveNoStreams) {
  GrpcTransportOptions aged = {.same_host = false};
  aged.limits.max_connection_age = absl::Hours(1);
  GrpcTransportOptions idle = {.same_host = false};
  idle.limits.max_connection_idle = absl::Hours(1);
  const GrpcTransportOptions small = {.max_message_bytes = 100'000,
                                      .same_host = false};
  for (const GrpcTransportOptions& options : {aged, idle, small}) {
    EchoServer server(options);
    const std::shared_ptr<Connection> connection =
        *client_.Connect({server.address()});
    AwaitConnected(*connection);
    for (int i = 0; i < 100; ++i) {
      EXPECT_THAT(Call(*connection, EchoServer::kEcho, "x").Wait(),
                  IsOkAndHolds("x"));
    }
    EXPECT_EQ(server.transport().DebugNumbers().count("call_streams_accepted"),
              0u);
  }
}

TEST_F(CallStreamTest, ShutdownWhileStreamsOpenEnds) {
  EchoServer server({.same_host = false});
  for (int i = 0; i < 50; ++i) {
    GrpcTransport client({.same_host = false});
    const std::shared_ptr<Connection> connection =
        *client.Connect({server.address()});
    AwaitConnected(*connection);
    std::vector<async::Future<std::string>> replies;
    for (int call = 0; call < 6 + i % 5; ++call) {
      replies.push_back(Call(*connection, EchoServer::kEcho, "x"));
    }
    client.Shutdown();
    for (const auto& reply : replies) EXPECT_TRUE(reply.ready());
  }
}

// A client that sends frames over a confirmed call stream.
class FrameStream {
 public:
  explicit FrameStream(const std::string& address)
      : stream_(address, "/hawser.v1.CallStreamService/Open") {
    EXPECT_EQ(Read(), "");
  }

  bool Write(const std::string& bytes) { return stream_.Write(bytes); }
  bool Write(const v1::CallFrame& frame) {
    v1::CallStreamMessage message;
    *message.add_frames() = frame;
    return Write(message.SerializeAsString());
  }
  std::optional<std::string> Read() { return stream_.Read(); }
  ::grpc::Status Finish() { return stream_.Finish(); }

 private:
  RawStream stream_;
};

v1::CallFrame Request(uint64_t call, const std::string& path,
                      const std::string& message) {
  v1::CallFrame frame;
  frame.set_kind(v1::CallFrame::KIND_REQUEST);
  frame.set_call(call);
  frame.set_path(path);
  frame.set_message(message);
  return frame;
}

v1::CallFrame OnlyFrame(const std::optional<std::string>& bytes) {
  v1::CallStreamMessage message;
  EXPECT_TRUE(bytes.has_value());
  EXPECT_TRUE(message.ParseFromString(bytes.value_or("")));
  EXPECT_EQ(message.frames_size(), 1);
  return message.frames_size() == 1 ? message.frames(0) : v1::CallFrame();
}

TEST_F(CallStreamTest, AnyClientMayUseAStream) {
  Server server;
  FrameStream stream(server.address());
  EXPECT_TRUE(stream.Write(Request(0, "/t.T/Echo", "hello")));
  v1::CallFrame reply = OnlyFrame(stream.Read());
  EXPECT_EQ(reply.kind(), v1::CallFrame::KIND_REPLY);
  EXPECT_EQ(reply.call(), 0u);
  EXPECT_EQ(reply.message(), "hello");
  EXPECT_TRUE(stream.Write(Request(UINT64_MAX, "/t.T/None", "")));
  reply = OnlyFrame(stream.Read());
  EXPECT_EQ(reply.call(), UINT64_MAX);
  EXPECT_EQ(reply.error().code(), ::grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(CallStreamTest, MalformedMessagesEndOnlyTheirStream) {
  Server server;
  const auto connection = server.Connect(client_);
  v1::CallFrame too_long = Request(1, "/t.T/Echo", std::string(65'537, 'x'));
  v1::CallStreamMessage whole;
  *whole.add_frames() = too_long;
  for (const std::string& bytes :
       {std::string("\xff\xff"), std::string("\x0a\x05\x08"),
        whole.SerializeAsString()}) {
    FrameStream stream(server.address());
    (void)stream.Write(bytes);
    EXPECT_EQ(stream.Read(), std::nullopt);
    EXPECT_EQ(stream.Finish().error_code(), ::grpc::StatusCode::INTERNAL);
  }
  EXPECT_THAT(Call(*connection, "/t.T/Echo", "x").Wait(), IsOkAndHolds("x"));
}

TEST_F(CallStreamTest, SenselessFramesAreIgnored) {
  Server server;
  FrameStream stream(server.address());
  v1::CallFrame reply;
  reply.set_kind(v1::CallFrame::KIND_REPLY);
  reply.set_call(5);
  EXPECT_TRUE(stream.Write(reply));
  v1::CallFrame cancel;
  cancel.set_kind(v1::CallFrame::KIND_CANCEL);
  cancel.set_call(6);
  EXPECT_TRUE(stream.Write(cancel));
  EXPECT_TRUE(stream.Write(v1::CallFrame()));
  // A fragment to a server.
  v1::CallStreamMessage message;
  message.mutable_fragment()->set_call(7);
  message.mutable_fragment()->mutable_fragment()->add_part_bytes(1 << 30);
  message.mutable_fragment()->mutable_fragment()->set_content("x");
  EXPECT_TRUE(stream.Write(message.SerializeAsString()));
  EXPECT_TRUE(stream.Write(Request(5, "/t.T/Echo", "on")));
  EXPECT_EQ(OnlyFrame(stream.Read()).message(), "on");
}

// A client cannot make the server keep an unlimited number of replies.
TEST_F(CallStreamTest, ClientThatDoesNotReadLosesItsStream) {
  Server server;
  FrameStream stream(server.address());
  v1::CallStreamMessage requests;
  for (uint64_t call = 0; call < 500; ++call) {
    *requests.add_frames() = Request(call, "/t.T/Echo", std::string(1000, 'x'));
  }
  bool open = true;
  for (int i = 0; i < 1000 && open; ++i) {
    for (v1::CallFrame& frame : *requests.mutable_frames()) {
      frame.set_call(frame.call() + 500);
    }
    open = stream.Write(requests.SerializeAsString());
  }
  EXPECT_FALSE(open);
  // gRPC says that the stream has ended once all that arrived was read.
  while (stream.Read().has_value()) {
  }
  EXPECT_EQ(stream.Finish().error_code(), ::grpc::StatusCode::CANCELLED);
}

// Long replies beyond the quota become errors.
TEST_F(CallStreamTest, UnreadLongRepliesAreLimited) {
  constexpr size_t kReplyBytes = size_t{1} << 20;
  EchoServer server({.max_message_bytes = 4 * kReplyBytes,
                     .limits = {.memory_quota_bytes = 16 * kReplyBytes}});
  FrameStream stream(server.address());
  for (uint64_t call = 0; call < 20; ++call) {
    ASSERT_TRUE(stream.Write(Request(call, EchoServer::kHold, "x")));
  }
  server.AwaitHeld(20);
  for (const std::unique_ptr<IncomingCall>& call : server.held()) {
    call->Reply(Payload(std::string(kReplyBytes, 'r')));
  }
  // Eight megabytes are allowed; gRPC may have sent a few before.
  for (int num_dropped = 0; num_dropped < 4;) {
    const std::optional<std::string> bytes = stream.Read();
    ASSERT_TRUE(bytes.has_value());
    v1::CallStreamMessage message;
    ASSERT_TRUE(message.ParseFromString(*bytes));
    for (const v1::CallFrame& frame : message.frames()) {
      EXPECT_EQ(frame.error().code(), ::grpc::StatusCode::RESOURCE_EXHAUSTED);
      EXPECT_THAT(frame.error().message(), HasSubstr("unread replies"));
      ++num_dropped;
    }
  }
}

}  // namespace
}  // namespace hawser::rpc
