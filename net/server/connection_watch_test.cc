#include "net/server/connection_watch.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "gmock/gmock.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "net/health/health.h"
#include "net/health/health_service.h"
#include "net/server/connection_limiter.h"
#include "net/server/misuse_detector.h"
#include "net/server/open_calls.h"
#include "net/testing/raw_http2.h"

namespace hawser::net {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr int kMaxCalls = 4;
constexpr int kMaxSeenCalls =
    static_cast<int>(MisuseDetector::kSeenCalls) * kMaxCalls;

// A server whose connections a test accepts.
class ConnectionWatchTest : public testing::Test {
 protected:
  void SetUp() override {
    listening_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const raw = reinterpret_cast<sockaddr*>(&address);
    ASSERT_EQ(bind(listening_, raw, size), 0);
    ASSERT_EQ(listen(listening_, 16), 0);
    ASSERT_EQ(getsockname(listening_, raw, &size), 0);
    address_ = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
    grpc::ServerBuilder builder;
    builder.AddChannelArgument(GRPC_ARG_ENABLE_CHANNELZ, 1);
    builder.RegisterService(&service_);
    acceptor_ = builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
        grpc::InsecureServerCredentials());
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
  }
  void TearDown() override {
    server_->Shutdown(std::chrono::system_clock::now());
    close(listening_);
  }

  // A client whose connection gRPC has got, and its server the settings.
  std::unique_ptr<RawHttp2> Connect() {
    auto client = std::make_unique<RawHttp2>(address_);
    EXPECT_TRUE(client->SendPreface());
    sockaddr_storage peer{};
    socklen_t size = sizeof(peer);
    const int fd = accept4(listening_, reinterpret_cast<sockaddr*>(&peer),
                           &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    EXPECT_GE(fd, 0);
    EXPECT_TRUE(connections_.Add(fd, peer, now_));
    Acceptor::NewConnectionParameters parameters;
    parameters.listener_fd = listening_;
    parameters.fd = fd;
    acceptor_->HandleNewConnection(&parameters);
    Frame frame;
    EXPECT_TRUE(client->Await(FrameType::kSettings, frame));
    return client;
  }

  // Opens `count` calls of one connection, and waits until gRPC has seen them.
  void OpenCallsOf(RawHttp2& client, int count) {
    const std::string headers =
        HeaderBlock(CallHeaders("/grpc.health.v1.Health/Check"));
    for (int i = 0; i < count; ++i) {
      // Long enough for the watch to look at the connection.
      std::string block =
          headers + HeaderBlock({{"x", std::string(4000, 'x')}});
      ASSERT_TRUE(client.Send({.type = FrameType::kHeaders,
                               .flags = kEndHeaders,
                               .stream = static_cast<uint32_t>(2 * i + 1),
                               .payload = std::move(block)}));
    }
    OpenCalls open_calls;
    const auto all_are_open = [&] {
      for (const ConnectionCalls& calls : open_calls.CountAll()) {
        if (calls.open_calls == count) return true;
      }
      return false;
    };
    while (!all_are_open()) std::this_thread::yield();
  }

  void Tick(absl::Duration later) {
    now_ = async::AddDelay(now_, later);
    watch_.Tick(now_);
  }

  using Acceptor = grpc::experimental::ExternalConnectionAcceptor;

  async::MonotonicTime now_ = std::chrono::steady_clock::now();
  HealthService service_{std::make_shared<Health>(std::vector<std::string>{})};
  std::unique_ptr<Acceptor> acceptor_;
  std::unique_ptr<grpc::Server> server_;
  int listening_ = -1;
  std::string address_;
  ConnectionLimiter connections_{{.total = 16, .per_address = 16}};
  std::vector<std::string> misused_;
  size_t resident_bytes_ = 0;
  ConnectionWatch watch_{{.max_calls_per_connection = kMaxCalls,
                          .memory_watermark_bytes = size_t{1} << 40,
                          .max_message_bytes = int64_t{1} << 20},
                         "server",
                         &connections_,
                         [this](const ConnectionLimiter::Connection& connection,
                                async::MonotonicTime now) {
                           EXPECT_EQ(now, now_);
                           misused_.push_back(connection.address);
                         },
                         [this] { return resident_bytes_; }};
};

TEST_F(ConnectionWatchTest, IsAlertAfterAConnectionWasPassed) {
  const auto client = Connect();
  Tick(absl::ZeroDuration());
  watch_.OnPassed(connections_.known().back().key, now_);
  OpenCallsOf(*client, kMaxSeenCalls + 1);
  EXPECT_EQ(watch_.PollTimeout(now_), 10);
  Tick(ConnectionWatch::kAlertInterval);
  EXPECT_EQ(watch_.num_closed(), 1);
  EXPECT_THAT(misused_, ElementsAre(std::string("\x7f\0\0\1", 4)));
  EXPECT_TRUE(client->AwaitClosed());
}

// A connection that is not new costs nothing while the watch is alert.
TEST_F(ConnectionWatchTest, IsAlertToThatConnection) {
  const auto old = Connect();
  Tick(absl::ZeroDuration());
  const auto client = Connect();
  watch_.OnPassed(connections_.known().back().key, now_);
  OpenCallsOf(*old, kMaxSeenCalls + 1);
  for (int i = 0; i < 10; ++i) Tick(ConnectionWatch::kAlertInterval);
  EXPECT_EQ(watch_.num_closed(), 0);
  // It is not alert any more.
  Tick(absl::Milliseconds(600));
  EXPECT_GT(watch_.PollTimeout(now_), 200);
}

// After a misuse, and thus also to connections that are not new.
TEST_F(ConnectionWatchTest, IsAlertToAllAfterAMisuse) {
  const auto old = Connect();
  Tick(absl::ZeroDuration());
  const auto client = Connect();
  watch_.OnPassed(connections_.known().back().key, now_);
  OpenCallsOf(*client, kMaxSeenCalls + 1);
  Tick(ConnectionWatch::kAlertInterval);
  EXPECT_EQ(watch_.num_closed(), 1);
  OpenCallsOf(*old, kMaxSeenCalls + 2);
  Tick(ConnectionWatch::kInterval);
  EXPECT_EQ(watch_.num_closed(), 2);
}

TEST_F(ConnectionWatchTest, LooksAtAllWhenTheProcessGrows) {
  const auto client = Connect();
  Tick(absl::ZeroDuration());
  OpenCallsOf(*client, kMaxSeenCalls + 1);
  resident_bytes_ = MisuseDetector::kGrowthBytes;
  Tick(ConnectionWatch::kInterval);
  EXPECT_EQ(watch_.num_closed(), 1);
}

TEST_F(ConnectionWatchTest, LooksRarelyOtherwise) {
  const auto client = Connect();
  Tick(absl::ZeroDuration());
  OpenCallsOf(*client, kMaxSeenCalls + 1);
  EXPECT_GT(watch_.PollTimeout(now_), 200);
  Tick(ConnectionWatch::kInterval);
  EXPECT_EQ(watch_.num_closed(), 0);
  Tick(absl::Seconds(1));
  EXPECT_EQ(watch_.num_closed(), 1);
}

TEST_F(ConnectionWatchTest, AllowedCallsStayOpenWhileItIsAlert) {
  const auto client = Connect();
  Tick(absl::ZeroDuration());
  watch_.OnPassed(connections_.known().back().key, now_);
  OpenCallsOf(*client, kMaxSeenCalls);
  for (int i = 0; i < 10; ++i) Tick(ConnectionWatch::kAlertInterval);
  Tick(absl::Seconds(1));
  EXPECT_EQ(watch_.num_closed(), 0);
}

TEST_F(ConnectionWatchTest, CallsOfSomeConnectionsAreCounted) {
  OpenCalls open_calls;
  const auto first = Connect();
  const std::vector<ConnectionCalls> one = open_calls.CountAll();
  ASSERT_EQ(one.size(), 1u);
  const auto second = Connect();
  const std::vector<ConnectionCalls> both = open_calls.CountAll();
  ASSERT_EQ(both.size(), 2u);
  const auto is = [](const ConnectionCalls& calls) {
    return Field(&ConnectionCalls::connection, calls.connection);
  };
  EXPECT_THAT(open_calls.CountOf({one[0].connection}), ElementsAre(is(one[0])));
  EXPECT_THAT(open_calls.CountOf({}), IsEmpty());
  OpenCalls newcomer;
  EXPECT_THAT(newcomer.CountOf({both[0].connection, both[1].connection}),
              UnorderedElementsAre(is(both[0]), is(both[1])));
}

}  // namespace
}  // namespace hawser::net
