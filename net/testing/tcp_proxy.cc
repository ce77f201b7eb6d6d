#include "net/testing/tcp_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include "absl/strings/str_cat.h"
#include "async/check.h"

namespace hawser::net {
namespace {

sockaddr_in Loopback(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

}  // namespace

struct TcpProxy::Connection {
  ~Connection() {
    close(client);
    close(server);
  }
  void Close() const {
    shutdown(client, SHUT_RDWR);
    shutdown(server, SHUT_RDWR);
  }

  int client = -1;
  int server = -1;
};

TcpProxy::TcpProxy(int server_port) : server_port_(server_port) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = Loopback(0);
  socklen_t length = sizeof(address);
  auto* const raw = reinterpret_cast<sockaddr*>(&address);
  HAWSER_CHECK(bind(listener_, raw, length) == 0 &&
               listen(listener_, 16) == 0 &&
               getsockname(listener_, raw, &length) == 0);
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { Accept(); });
}

TcpProxy::~TcpProxy() {
  {
    async::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  close(listener_);
  CloseConnections();
  async::MutexLock lock(&mutex_);
  for (std::thread& pump : pumps_) pump.join();
}

std::string TcpProxy::address() const {
  return absl::StrCat("127.0.0.1:", port_);
}

void TcpProxy::CloseConnections() {
  async::MutexLock lock(&mutex_);
  for (const auto& connection : connections_) connection->Close();
  connections_.clear();
  // Reset only now, so that no reply gets through, and before new connections,
  // which wait for the lock, carry replies.
  swallow_ = false;
}

void TcpProxy::Accept() {
  while (true) {
    const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) return;
    auto connection = std::make_shared<Connection>();
    connection->client = client;
    connection->server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = Loopback(server_port_);
    if (connect(connection->server, reinterpret_cast<const sockaddr*>(&address),
                sizeof(address)) != 0) {
      continue;
    }
    async::MutexLock lock(&mutex_);
    if (stopping_) return;
    connections_.push_back(connection);
    for (const bool replies : {false, true}) {
      pumps_.emplace_back(
          [this, connection, replies] { Pump(connection, replies); });
    }
  }
}

void TcpProxy::Pump(const std::shared_ptr<Connection>& connection,
                    bool replies) {
  const int from = replies ? connection->server : connection->client;
  const int to = replies ? connection->client : connection->server;
  std::array<char, 4096> buffer;
  while (true) {
    const ssize_t count = recv(from, buffer.data(), buffer.size(), 0);
    if (count <= 0) break;
    if (replies && swallow_) continue;
    if (send(to, buffer.data(), static_cast<size_t>(count), MSG_NOSIGNAL) !=
        count) {
      break;
    }
  }
  connection->Close();
}

}  // namespace hawser::net
