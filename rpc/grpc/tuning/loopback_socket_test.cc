#include "rpc/grpc/tuning/loopback_socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/grpc/transport.h"
#include "rpc/testing/echo_server.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::testing::SizeIs;

// The connected TCP sockets of this process.
std::vector<int> Connections() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  std::vector<int> connections;
  for (int fd = 0;
       fd < static_cast<int>(std::min<rlim_t>(limit.rlim_cur, 1024)); ++fd) {
    sockaddr_storage peer{};
    socklen_t size = sizeof peer;
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) == 0 &&
        (peer.ss_family == AF_INET || peer.ss_family == AF_INET6)) {
      connections.push_back(fd);
    }
  }
  return connections;
}

std::string CongestionControl(int fd) {
  char name[16] = {};
  socklen_t length = sizeof name;
  EXPECT_EQ(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &length), 0);
  return std::string(name, strnlen(name, length));
}

int ReceiveBuffer(int fd) {
  int bytes = 0;
  socklen_t length = sizeof bytes;
  EXPECT_EQ(getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, &length), 0);
  return bytes;
}

class LoopbackSocketTest : public testing::Test {
 protected:
  // Returns the sockets of both ends after one round trip.
  std::vector<int> ConnectAndEcho(size_t bytes) {
    connection_ = *client_.Connect({server_.address()});
    AwaitConnected(*connection_);
    EXPECT_THAT(
        Call(*connection_, EchoServer::kEcho, std::string(bytes, 'x')).Wait(),
        IsOk());
    return Connections();
  }

  EchoServer server_{{.same_host = false}};
  GrpcTransport client_{{.same_host = false}};
  std::shared_ptr<Connection> connection_;
};

TEST_F(LoopbackSocketTest, BothEndsRunUnderReno) {
  const std::vector<int> connections = ConnectAndEcho(1);
  ASSERT_THAT(connections, SizeIs(2));
  for (const int fd : connections) EXPECT_EQ(CongestionControl(fd), "reno");
}

TEST_F(LoopbackSocketTest, ReceiveBuffersDoNotGrow) {
  std::ifstream file("/proc/sys/net/core/rmem_max");
  int limit = 0;
  if (!(file >> limit) || limit < kLoopbackReceiveBuffer) {
    GTEST_SKIP() << "net.core.rmem_max is below " << kLoopbackReceiveBuffer;
  }
  const std::vector<int> connections = ConnectAndEcho(size_t{20} << 20);
  ASSERT_THAT(connections, SizeIs(2));
  for (const int fd : connections) {
    EXPECT_EQ(ReceiveBuffer(fd), 2 * kLoopbackReceiveBuffer);
  }
}

}  // namespace
}  // namespace hawser::rpc
