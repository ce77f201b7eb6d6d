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
#include "fs/unique_fd.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/grpc/transport.h"
#include "rpc/testing/echo_server.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::testing::SizeIs;

bool IsTcp(const sockaddr_storage& address) {
  return address.ss_family == AF_INET || address.ss_family == AF_INET6;
}

bool IsConnection(int fd) {
  sockaddr_storage peer{};
  socklen_t size = sizeof peer;
  return getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) == 0 &&
         IsTcp(peer);
}

bool IsListening(int fd) {
  int listens = 0;
  socklen_t length = sizeof listens;
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) == 0 &&
         listens != 0 &&
         getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0 &&
         IsTcp(address);
}

// The descriptors of this process for which `accept` returns true.
std::vector<int> Descriptors(bool (*accept)(int)) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  std::vector<int> descriptors;
  for (int fd = 0;
       fd < static_cast<int>(std::min<rlim_t>(limit.rlim_cur, 1024)); ++fd) {
    if (accept(fd)) descriptors.push_back(fd);
  }
  return descriptors;
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
    return Descriptors(IsConnection);
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

// An accepted connection that began with BBR would go on pacing its packets.
TEST_F(LoopbackSocketTest, ConnectionsBeginUnderReno) {
  const std::vector<int> listening = Descriptors(IsListening);
  ASSERT_THAT(listening, SizeIs(1));
  EXPECT_EQ(CongestionControl(listening[0]), "reno");
}

TEST(ServerSocketTuningTest, OtherMachinesHaveTheSystemsCongestionControl) {
  const fs::UniqueFd listening(socket(AF_INET, SOCK_STREAM, 0));
  const std::string system_default = CongestionControl(listening.get());
  ServerSocketTuning tuning;
  tuning.OnListening(listening.get());
  EXPECT_EQ(CongestionControl(listening.get()), "reno");
  // Not connected to a loopback address.
  const fs::UniqueFd accepted(socket(AF_INET, SOCK_STREAM, 0));
  setsockopt(accepted.get(), IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
  tuning.OnAccepted(accepted.get());
  EXPECT_EQ(CongestionControl(accepted.get()), system_default);
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
