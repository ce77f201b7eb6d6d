// Tests of connections closed by the server: callers open new ones, and no call
// runs twice.

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/future.h"
#include "async/mutex.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "net/testing/raw_http2.h"
#include "rpc/grpc/transport.h"
#include "rpc/testing/echo_server.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::hawser::net::Frame;
using ::hawser::net::FrameType;
using ::hawser::net::RawHttp2;

// Only over the socket, which has connections.
GrpcTransportOptions Options(GrpcLimits limits) {
  return {.limits = std::move(limits), .same_host = false};
}

absl::StatusOr<std::string> Echo(Connection& connection, std::string text) {
  return Call(connection, EchoServer::kEcho, std::move(text),
              std::chrono::steady_clock::now() + std::chrono::seconds(30))
      .Wait();
}

// Makes a call that the server holds; retries if the connection was closed
// before the call arrived.
async::Future<std::string> Hold(EchoServer& server, Connection& connection) {
  while (true) {
    async::Future<std::string> reply = Call(connection, EchoServer::kHold, "");
    if (server.AwaitHeldUnlessEnded(reply)) return reply;
  }
}

TEST(ConnectionLifetimeTest, IdleConnectionIsClosedAndTheNextCallOpensAnother) {
  // One connection at a time: the next one is served once the first is closed.
  EchoServer server(Options(
      {.max_connections = 1, .max_connection_idle = absl::Milliseconds(50)}));
  GrpcTransport client({.same_host = false});
  GrpcTransport other({.same_host = false});
  auto first = *client.Connect({.address = server.address()});
  auto second = *other.Connect({.address = server.address()});
  for (int i = 0; i < 3; ++i) {
    while (!Echo(*first, "first").ok()) {
    }
    while (!Echo(*second, "second").ok()) {
    }
  }
}

TEST(ConnectionLifetimeTest, ConnectionWithACallIsNotIdle) {
  EchoServer server(Options({.max_connection_idle = absl::Milliseconds(20)}));
  GrpcTransport client({.same_host = false});
  auto connection = *client.Connect({.address = server.address()});
  async::Future<std::string> held = Hold(server, *connection);
  // An idle connection is opened and closed meanwhile, perhaps before its
  // handshake.
  RawHttp2 idle(server.address());
  (void)idle.SendPreface();
  EXPECT_TRUE(idle.AwaitClosed());
  server.held()[0]->Reply(Payload("late"));
  EXPECT_THAT(held.Wait(), IsOkAndHolds("late"));
}

// Counts how often each request ran.
class CountingServer {
 public:
  explicit CountingServer(GrpcLimits limits) : transport_(Options(limits)) {
    auto address = transport_.Listen(
        "127.0.0.1:0", {{.path = "/t.T/Count",
                         .handler =
                             [this](std::unique_ptr<IncomingCall> call) {
                               Payload request = call->TakeRequest();
                               {
                                 async::MutexLock lock(&mutex_);
                                 ++runs_[request.Flatten().value()];
                               }
                               call->Reply(Payload());
                             },
                         .hot = true}});
    EXPECT_THAT(address, IsOk());
    address_ = *address;
  }

  const std::string& address() const { return address_; }
  absl::flat_hash_map<std::string, int> runs() {
    async::MutexLock lock(&mutex_);
    return runs_;
  }

 private:
  async::Mutex mutex_;
  absl::flat_hash_map<std::string, int> runs_ ABSL_GUARDED_BY(mutex_);
  GrpcTransport transport_;
  std::string address_;
};

TEST(ConnectionLifetimeTest, CallsContinueAcrossConnectionAges) {
  CountingServer server({.max_connection_age = absl::Milliseconds(100)});
  GrpcTransport client({.same_host = false});
  auto connection = *client.Connect({.address = server.address()});
  int num_calls = 0;
  std::vector<std::string> answered;
  // Each of these lasts for a full connection age, like the caller's
  // connection.
  for (int life = 0; life < 8; ++life) {
    RawHttp2 peer(server.address());
    ASSERT_TRUE(peer.SendPreface());
    async::Promise<void> ended;
    async::Future<void> end = ended.future();
    std::thread watch([&] {
      Frame frame;
      EXPECT_TRUE(peer.Await(FrameType::kGoAway, frame));
      ended.Set(absl::OkStatus());
    });
    while (!end.ready()) {
      std::vector<async::Future<std::string>> calls;
      for (int i = 0; i < 32; ++i) {
        calls.push_back(
            Call(*connection, "/t.T/Count", absl::StrCat(num_calls++)));
      }
      for (size_t i = 0; i < calls.size(); ++i) {
        const absl::Status status = calls[i].Wait().status();
        if (status.ok()) {
          answered.push_back(absl::StrCat(num_calls - calls.size() + i));
        } else {
          // It was being sent when the connection stopped accepting calls.
          EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable));
        }
      }
    }
    watch.join();
  }
  while (!Call(*connection, "/t.T/Count", "last").Wait().ok()) {
  }
  // Few calls coincide with the end of a connection.
  EXPECT_GE(answered.size(), static_cast<size_t>(num_calls) / 2);
  const auto runs = server.runs();
  for (const auto& [request, count] : runs) EXPECT_EQ(count, 1) << request;
  for (const std::string& request : answered) {
    EXPECT_TRUE(runs.contains(request)) << request;
  }
}

TEST(ConnectionLifetimeTest, CallOfAnOldConnectionCompletes) {
  EchoServer server(Options({.max_connection_age = absl::Milliseconds(50)}));
  GrpcTransport client({.same_host = false});
  auto connection = *client.Connect({.address = server.address()});
  async::Future<std::string> held = Hold(server, *connection);
  RawHttp2 younger(server.address());
  ASSERT_TRUE(younger.SendPreface());
  Frame frame;
  EXPECT_TRUE(younger.Await(FrameType::kGoAway, frame));
  while (!Echo(*connection, "on another").ok()) {
  }
  EXPECT_FALSE(held.ready());
  server.held()[0]->Reply(Payload("late"));
  EXPECT_THAT(held.Wait(), IsOkAndHolds("late"));
}

TEST(ConnectionLifetimeTest, GraceEndsTheCallsOfAnOldConnection) {
  EchoServer server(
      Options({.max_connection_age = absl::Milliseconds(50),
               .max_connection_age_grace = absl::Milliseconds(50)}));
  GrpcTransport client({.same_host = false});
  auto connection = *client.Connect({.address = server.address()});
  async::Future<std::string> held = Call(*connection, EchoServer::kHold, "");
  EXPECT_THAT(held.Wait(), StatusIs(absl::StatusCode::kUnavailable));
  while (!Echo(*connection, "on another").ok()) {
  }
}

}  // namespace
}  // namespace hawser::rpc
