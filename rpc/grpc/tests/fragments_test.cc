// Tests of requests in fragments over real connections.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/future.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "grpcpp/support/status.h"
#include "gtest/gtest.h"
#include "proto/fragments.pb.h"
#include "rpc/grpc/fragments/message_fragments.h"
#include "rpc/grpc/tests/raw_stream.h"
#include "rpc/grpc/transport.h"
#include "rpc/testing/echo_server.h"
#include "rpc/testing/raw_client.h"
#include "rpc/transport/payload.h"
#include "rpc/transport/transport.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

// A client that sends fragments.
class FragmentStream {
 public:
  FragmentStream(const std::string& address, const std::string& path)
      : stream_(address, path) {}

  bool Write(const std::vector<uint64_t>& parts, const std::string& content) {
    v1::MessageFragment fragment;
    for (const uint64_t part : parts) fragment.add_part_bytes(part);
    fragment.set_content(content);
    return stream_.Write(fragment.SerializeAsString());
  }
  void WritesDone() { stream_.WritesDone(); }
  ::grpc::Status Finish() {
    (void)stream_.Read();
    return stream_.Finish();
  }

 private:
  RawStream stream_;
};

class FragmentsTest : public testing::Test {
 protected:
  void Serve(GrpcTransportOptions options = {}) {
    options.same_host = false;
    server_ = std::make_unique<EchoServer>(options);
    connection_ = *client_.Connect({server_->address()});
    AwaitConnected(*connection_);
  }

  async::Future<std::string> Call(
      std::string_view path, std::string request,
      async::MonotonicTime deadline = async::kNever) {
    return rpc::Call(*connection_, path, std::move(request), deadline);
  }

  // Returns a stream that has reserved the whole budget. Retries if another
  // reservation intervened and the stream was rejected.
  std::unique_ptr<FragmentStream> TakeRoom() {
    std::unique_ptr<FragmentStream> greedy;
    absl::StatusOr<std::string> reply = std::string();
    while (reply.ok()) {
      if (greedy == nullptr || !greedy->Write({}, "x")) {
        greedy = std::make_unique<FragmentStream>(server_->address(),
                                                  "/t.T/EchoInFragments");
        (void)greedy->Write({19'000'000}, "x");
      }
      reply = Call(EchoServer::kEcho, std::string(3'000'000, 'x')).Wait();
    }
    EXPECT_THAT(reply, StatusIs(absl::StatusCode::kResourceExhausted,
                                HasSubstr("memory_quota_bytes")));
    return greedy;
  }

  std::unique_ptr<EchoServer> server_;
  GrpcTransport client_{{.same_host = false}};
  std::shared_ptr<Connection> connection_;
};

TEST_F(FragmentsTest, OnlyLongRequestsAreSentInFragments) {
  Serve();
  for (const size_t size : {kMaxWholeRequest - 1, kMaxWholeRequest,
                            kMaxWholeRequest + 1, size_t{50'000'000}}) {
    const std::string request(size, 'r');
    EXPECT_TRUE(*Call(EchoServer::kEcho, request).Wait() == request) << size;
    EXPECT_EQ(server_->echoed_in_fragments(), size > kMaxWholeRequest) << size;
  }
}

TEST_F(FragmentsTest, ManyConcurrentCallsOverOneConnection) {
  Serve();
  std::vector<async::Future<std::string>> replies;
  for (char c = 'a'; c < 'q'; ++c) {
    replies.push_back(Call(EchoServer::kEcho, std::string(4'000'000, c)));
  }
  for (char c = 'a'; c < 'q'; ++c) {
    const absl::StatusOr<std::string> reply = replies[c - 'a'].Wait();
    ASSERT_THAT(reply, IsOk());
    EXPECT_TRUE(*reply == std::string(4'000'000, c));
  }
}

TEST_F(FragmentsTest, UnknownMethodIsUnimplemented) {
  Serve();
  EXPECT_THAT(Call("/t.T/None", std::string(3'000'000, 'x')).Wait(),
              StatusIs(absl::StatusCode::kUnimplemented));
}

TEST_F(FragmentsTest, CancelAndDeadlineReachTheServer) {
  Serve();
  async::Promise<void> promise;
  async::Future<void> ended = promise.future();
  const Connection::CallId call = connection_->Call(
      EchoServer::kHold, Payload(std::string(3'000'000, 'x')), async::kNever,
      [promise =
           std::move(promise)](const absl::StatusOr<Payload>& reply) mutable {
        promise.Set(reply.status());
      });
  server_->AwaitHeld(1);
  connection_->Cancel(call);
  EXPECT_THAT(ended.Wait(), StatusIs(absl::StatusCode::kCancelled));
  absl::Notification cancelled;
  Cancellation::Registration registration =
      server_->held()[0]->cancellation()->OnCancel([&] { cancelled.Notify(); });
  cancelled.WaitForNotification();

  EXPECT_THAT(Call(EchoServer::kHold, std::string(3'000'000, 'x'),
                   async::AddDelay(std::chrono::steady_clock::now(),
                                   absl::Milliseconds(200)))
                  .Wait(),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
}

TEST_F(FragmentsTest, ServerStopsWhileACallIsHeld) {
  Serve();
  async::Future<std::string> reply =
      Call(EchoServer::kHold, std::string(3'000'000, 'x'));
  server_->AwaitHeld(1);
  server_->transport().Shutdown();
  EXPECT_THAT(reply.Wait(), StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(FragmentsTest, ServerStopsInTheMiddleOfARequest) {
  Serve({.limits = {.memory_quota_bytes = 20'000'000}});
  const std::unique_ptr<FragmentStream> stream = TakeRoom();
  server_->transport().Shutdown();
  EXPECT_EQ(stream->Finish().error_code(), ::grpc::StatusCode::UNAVAILABLE);
}

TEST_F(FragmentsTest, ClientStopsInTheMiddleOfItsRequests) {
  Serve();
  constexpr int kCalls = 8;
  const auto bytes = std::make_shared<const std::string>(8'000'000, 'x');
  for (int turn = 0; turn < 30; ++turn) {
    GrpcTransport client({.same_host = false});
    const std::shared_ptr<Connection> connection =
        *client.Connect({server_->address()});
    std::atomic<int> num_done = 0;
    for (int i = 0; i < kCalls; ++i) {
      Payload request;
      request.Append(bytes, bytes->data(), bytes->size());
      connection->Call(EchoServer::kEcho, std::move(request), async::kNever,
                       [&](const absl::StatusOr<Payload>&) { ++num_done; });
    }
    client.Shutdown();
    EXPECT_EQ(num_done, kCalls);
  }
}

TEST_F(FragmentsTest, ClientOfAnyKindMaySendFragments) {
  Serve();
  FragmentStream stream(server_->address(), "/t.T/EchoInFragments");
  ASSERT_TRUE(stream.Write({3}, "a"));
  ASSERT_TRUE(stream.Write({}, "bc"));
  stream.WritesDone();
  EXPECT_TRUE(stream.Finish().ok());
  EXPECT_EQ(server_->num_echoed(), 1);
}

TEST_F(FragmentsTest, RequestsThatEndEarlyAreNotHandled) {
  Serve();
  FragmentStream stream(server_->address(), "/t.T/EchoInFragments");
  ASSERT_TRUE(stream.Write({100}, "abc"));
  stream.WritesDone();
  const ::grpc::Status status = stream.Finish();
  EXPECT_EQ(status.error_code(), ::grpc::StatusCode::INTERNAL);
  EXPECT_THAT(status.error_message(), HasSubstr("3 of 100 bytes"));
  EXPECT_EQ(server_->num_echoed(), 0);
}

TEST_F(FragmentsTest, MalformedFragmentsAreRefused) {
  Serve();
  FragmentStream stream(server_->address(), "/t.T/EchoInFragments");
  ASSERT_TRUE(stream.Write({1, 1}, "xx"));
  EXPECT_EQ(stream.Finish().error_code(), ::grpc::StatusCode::INTERNAL);
  EXPECT_EQ(server_->num_echoed(), 0);
}

TEST_F(FragmentsTest, LongRequestsAreRefusedWhenAnnounced) {
  Serve({.max_message_bytes = 10'000'000});
  FragmentStream stream(server_->address(), "/t.T/EchoInFragments");
  ASSERT_TRUE(stream.Write({10'000'001}, "x"));
  const ::grpc::Status status = stream.Finish();
  EXPECT_EQ(status.error_code(), ::grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(),
              AllOf(HasSubstr("10000001"), HasSubstr("max_message_bytes")));
  // The client detects it first.
  GrpcTransport client({.max_message_bytes = 10'000'000, .same_host = false});
  absl::Notification done;
  std::string request;
  request.resize(10'000'001);
  (*client.Connect({server_->address()}))
      ->Call(EchoServer::kEcho, Payload(std::move(request)), async::kNever,
             [&](const absl::StatusOr<Payload>& reply) {
               EXPECT_THAT(reply,
                           StatusIs(absl::StatusCode::kResourceExhausted));
               done.Notify();
             });
  done.WaitForNotification();
}

TEST_F(FragmentsTest, WholeRequestsHaveALowerLimit) {
  Serve({.limits = {.max_whole_request_bytes = 4'000'000}});
  RawClient client(RawClient::GrpcOptions{});
  const auto echo = [&](size_t size) {
    return client.Send({.address = server_->address()}, EchoServer::kEcho,
                       Payload(std::string(size, 'x')));
  };
  EXPECT_THAT(echo(3'999'999), IsOk());
  EXPECT_THAT(echo(4'000'001), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(Call(EchoServer::kEcho, std::string(5'000'000, 'x')).Wait(),
              IsOk());
  GrpcTransport other(
      {.limits = {.max_whole_request_bytes = kMaxWholeRequest - 1}});
  EXPECT_THAT(other.Listen("127.0.0.1:0", {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("max_whole_request_bytes")));
}

// The share of the budget for incomplete requests.
TEST_F(FragmentsTest, BudgetPerPeerIsLimited) {
  Serve({.max_message_bytes = 10'000'000,
         .limits = {.memory_quota_bytes = 20'000'000}});
  FragmentStream greedy(server_->address(), "/t.T/HoldInFragments");
  ASSERT_TRUE(greedy.Write({9'000'000}, "x"));
  // On the same connection, once the server has seen the other stream.
  ::grpc::Status status;
  while (status.ok()) {
    FragmentStream second(server_->address(), "/t.T/EchoInFragments");
    ASSERT_TRUE(second.Write({3'000'000}, std::string(3'000'000, 'x')));
    second.WritesDone();
    status = second.Finish();
  }
  EXPECT_EQ(status.error_code(), ::grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("of one peer"));
  EXPECT_THAT(Call(EchoServer::kEcho, std::string(3'000'000, 'x')).Wait(),
              IsOk());
}

TEST_F(FragmentsTest, StalledRequestsAreCancelled) {
  Serve({.limits = {.fragment_timeout = absl::Milliseconds(100)}});
  FragmentStream silent(server_->address(), "/t.T/EchoInFragments");
  std::optional<FragmentStream> stopped;
  // Retry if the request was cancelled before its first fragment.
  do {
    stopped.emplace(server_->address(), "/t.T/EchoInFragments");
  } while (!stopped->Write({9'000'000}, "x"));
  for (FragmentStream* stream : {&silent, &*stopped}) {
    const ::grpc::Status status = stream->Finish();
    EXPECT_EQ(status.error_code(), ::grpc::StatusCode::DEADLINE_EXCEEDED);
    EXPECT_THAT(status.error_message(), HasSubstr("fragment_timeout"));
  }
  EXPECT_EQ(server_->num_echoed(), 0);
}

// The timeout applies between two fragments, not to the function.
TEST_F(FragmentsTest, SlowRequestsAreNotCancelled) {
  constexpr auto kLonger = std::chrono::milliseconds(2200);
  Serve({.limits = {.fragment_timeout = absl::Seconds(1)}});
  ::grpc::Status status;
  Clock::duration longest_step;
  // Retry if this machine stalled.
  do {
    auto last = Clock::now();
    longest_step = {};
    FragmentStream slow(server_->address(), "/t.T/EchoInFragments");
    const auto write = [&](const std::vector<uint64_t>& parts, uint64_t bytes) {
      const bool written = slow.Write(parts, std::string(bytes, 'x'));
      // A round trip gives the server time to read the fragment.
      EXPECT_THAT(Call(EchoServer::kEcho, "x").Wait(), IsOk());
      const auto now = Clock::now();
      longest_step = std::max(longest_step, now - std::exchange(last, now));
      return written;
    };
    const auto until = last + kLonger;
    uint64_t left = 999'999;
    write({1'000'000}, 1);
    while (last < until && write({}, 1)) --left;
    write({}, left);
    status = slow.Finish();
    longest_step = std::max(longest_step, Clock::now() - last);
  } while (!status.ok() && longest_step > std::chrono::milliseconds(500));
  EXPECT_TRUE(status.ok()) << status.error_message();
  async::Future<std::string> reply;
  do {
    reply = Call(EchoServer::kHold, std::string(3'000'000, 'x'));
  } while (!server_->AwaitHeldUnlessEnded(reply));
  for (const auto until = Clock::now() + kLonger; Clock::now() < until;) {
    EXPECT_THAT(Call(EchoServer::kEcho, "x").Wait(), IsOk());
  }
  server_->held()[0]->Reply(Payload("y"));
  EXPECT_THAT(reply.Wait(), IsOkAndHolds("y"));
}

// A client that announces more than it sends blocks others only while it is
// connected.
TEST_F(FragmentsTest, AnnouncedMemoryIsLimitedAndReleased) {
  Serve({.limits = {.memory_quota_bytes = 20'000'000}});
  TakeRoom().reset();
  absl::StatusOr<std::string> reply = absl::ResourceExhaustedError("");
  while (absl::IsResourceExhausted(reply.status())) {
    reply = Call(EchoServer::kEcho, std::string(3'000'000, 'x')).Wait();
  }
  EXPECT_THAT(reply, IsOk());
}

}  // namespace
}  // namespace hawser::rpc
