#include "net/testing/tcp_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace hawser::net {
namespace {

using Direction = TcpProxy::Direction;

// A client and a server with the proxy between them.
class TcpProxyTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(mkdtemp(directory_), nullptr);
    path_ = absl::StrCat(directory_, "/s");
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.data(), path_.size());
    listener_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT_EQ(
        bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address)),
        0);
    ASSERT_EQ(listen(listener_, 8), 0);
    proxy_ = std::make_unique<TcpProxy>(path_);
    client_ = Connect();
    server_ = accept(listener_, nullptr, nullptr);
    ASSERT_GE(server_, 0);
  }

  void TearDown() override {
    close(client_);
    close(server_);
    close(listener_);
    unlink(path_.c_str());
    rmdir(directory_);
  }

  int Connect() {
    const std::string to = proxy_->address();
    int port = 0;
    EXPECT_TRUE(absl::SimpleAtoi(to.substr(to.rfind(':') + 1), &port));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<uint16_t>(port));
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(
        connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    return fd;
  }

  static void Send(int fd, const std::string& bytes) {
    ASSERT_EQ(send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }

  // "end" at the end, "nothing" if nothing comes within `limit`, otherwise what
  // came or the error.
  static std::string Receive(int fd, absl::Duration limit = absl::Seconds(20)) {
    pollfd wanted{fd, POLLIN, 0};
    if (poll(&wanted, 1, static_cast<int>(absl::ToInt64Milliseconds(limit))) !=
        1) {
      return "nothing";
    }
    char bytes[64];
    const ssize_t count = recv(fd, bytes, sizeof(bytes), 0);
    if (count < 0) return std::strerror(errno);
    return count == 0 ? "end" : std::string(bytes, count);
  }

  char directory_[32] = "/tmp/tcp_proxy.XXXXXX";
  std::string path_;
  int listener_ = -1;
  int client_ = -1;
  int server_ = -1;
  std::unique_ptr<TcpProxy> proxy_;
};

TEST_F(TcpProxyTest, ForwardsBytesAndEndsBothWays) {
  Send(client_, "ask");
  EXPECT_EQ(Receive(server_), "ask");
  Send(server_, "answer");
  EXPECT_EQ(Receive(client_), "answer");
  shutdown(client_, SHUT_WR);
  EXPECT_EQ(Receive(server_), "end");
  Send(server_, "last");
  EXPECT_EQ(Receive(client_), "last");
  EXPECT_EQ(proxy_->num_connections(), 1);
}

TEST_F(TcpProxyTest, BlackHoleHoldsOneWayAndLetsGoLater) {
  proxy_->BlackHole(Direction::kToServer, true);
  Send(client_, "lost");
  shutdown(client_, SHUT_WR);
  EXPECT_EQ(Receive(server_, absl::Milliseconds(200)), "nothing");
  Send(server_, "other way");
  EXPECT_EQ(Receive(client_), "other way");
  proxy_->BlackHole(Direction::kToServer, false);
  EXPECT_EQ(Receive(server_), "lost");
  EXPECT_EQ(Receive(server_), "end");
}

TEST_F(TcpProxyTest, DelayKeepsTheOrder) {
  constexpr absl::Duration kDelay = absl::Milliseconds(200);
  proxy_->SetDelay(Direction::kToServer, kDelay);
  const absl::Time start = absl::Now();
  Send(client_, "late");
  EXPECT_EQ(Receive(server_), "late");
  EXPECT_GE(absl::Now() - start, kDelay);
}

TEST_F(TcpProxyTest, DiscardDropsBytesOfOneWayUntilReset) {
  proxy_->Discard(Direction::kToClient);
  Send(server_, "lost");
  shutdown(server_, SHUT_WR);
  EXPECT_EQ(Receive(client_), "end");
  Send(client_, "still");
  EXPECT_EQ(Receive(server_), "still");
  proxy_->Reset();
  close(client_);
  client_ = Connect();
  close(server_);
  server_ = accept(listener_, nullptr, nullptr);
  Send(server_, "again");
  EXPECT_EQ(Receive(client_), "again");
}

TEST_F(TcpProxyTest, ServersAtPortsTakeNewConnections) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(bind(listener, generic, size), 0);
  ASSERT_EQ(listen(listener, 8), 0);
  ASSERT_EQ(getsockname(listener, generic, &size), 0);
  proxy_->SetServerPort(ntohs(address.sin_port));
  const int client = Connect();
  const int server = accept(listener, nullptr, nullptr);
  Send(client, "ask");
  EXPECT_EQ(Receive(server), "ask");
  // The connection from before stays with its server.
  Send(client_, "old");
  EXPECT_EQ(Receive(server_), "old");
  for (const int fd : {client, server, listener}) close(fd);
}

TEST_F(TcpProxyTest, ResetBreaksBothEnds) {
  proxy_->Reset();
  EXPECT_EQ(Receive(client_), std::strerror(ECONNRESET));
  EXPECT_EQ(Receive(server_), "end");
  // New connections are forwarded again.
  close(client_);
  client_ = Connect();
  close(server_);
  server_ = accept(listener_, nullptr, nullptr);
  Send(client_, "again");
  EXPECT_EQ(Receive(server_), "again");
}

TEST_F(TcpProxyTest, HalfCloseEndsOneWay) {
  proxy_->HalfClose(Direction::kToClient);
  EXPECT_EQ(Receive(client_), "end");
  Send(client_, "still");
  EXPECT_EQ(Receive(server_), "still");
  Send(server_, "lost");
  EXPECT_EQ(Receive(client_), "end");
}

TEST_F(TcpProxyTest, RefusesWhereNobodyServes) {
  close(listener_);
  unlink(path_.c_str());
  const int fd = Connect();
  EXPECT_EQ(Receive(fd), std::strerror(ECONNRESET));
  close(fd);
}

}  // namespace
}  // namespace hawser::net
