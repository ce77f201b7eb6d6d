#include "rpc/grpc/tuning/loopback_socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cstring>
#include <fstream>
#include <string>
#include <string_view>

#include "grpc/support/sync.h"

#if __has_include("src/core/lib/iomgr/socket_mutator.h")
#include "src/core/lib/iomgr/socket_mutator.h"
#else
// gRPC accepts a socket mutator in its public API, but declares it in a header
// that is not installed. Copied from gRPC 1.51.
enum grpc_fd_usage {
  GRPC_FD_CLIENT_CONNECTION_USAGE,
  GRPC_FD_SERVER_LISTENER_USAGE,
  GRPC_FD_SERVER_CONNECTION_USAGE,
};

struct grpc_mutate_socket_info {
  int fd;
  grpc_fd_usage usage;
};

struct grpc_socket_mutator_vtable {
  bool (*mutate_fd)(int fd, grpc_socket_mutator* mutator);
  int (*compare)(grpc_socket_mutator* a, grpc_socket_mutator* b);
  void (*destroy)(grpc_socket_mutator* mutator);
  bool (*mutate_fd_2)(const grpc_mutate_socket_info* info,
                      grpc_socket_mutator* mutator);
};

struct grpc_socket_mutator {
  const grpc_socket_mutator_vtable* vtable;
  gpr_refcount refcount;
};

void grpc_socket_mutator_init(grpc_socket_mutator* mutator,
                              const grpc_socket_mutator_vtable* vtable);
#endif

namespace hawser::rpc {
namespace {

constexpr std::string_view kCongestionControl = "reno";

bool IsLoopback(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &address, sizeof v4);
    return ntohl(v4.sin_addr.s_addr) >> 24 == 127;
  }
  if (address.ss_family == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, &address, sizeof v6);
    return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr) ||
           (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr) &&
            v6.sin6_addr.s6_addr[12] == 127);
  }
  return false;
}

bool HasLoopbackPeer(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  return getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0 &&
         IsLoopback(address);
}

// Whether the system allows kLoopbackReceiveBuffer. A smaller buffer would make
// both ends wait for each other.
bool MaySetReceiveBuffer() {
  static const bool may_set = [] {
    std::ifstream file("/proc/sys/net/core/rmem_max");
    int limit = 0;
    return static_cast<bool>(file >> limit) && limit >= kLoopbackReceiveBuffer;
  }();
  return may_set;
}

void SetCongestionControl(int fd, std::string_view name) {
  setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(), name.size());
}

void Tune(int fd) {
  SetCongestionControl(fd, kCongestionControl);
  if (MaySetReceiveBuffer()) {
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &kLoopbackReceiveBuffer,
               sizeof kLoopbackReceiveBuffer);
  }
}

// Always returns true, since false would make gRPC reject the connection.
bool Mutate(const grpc_mutate_socket_info* socket, grpc_socket_mutator*) {
  if (socket->usage == GRPC_FD_CLIENT_CONNECTION_USAGE) Tune(socket->fd);
  return true;
}

constexpr grpc_socket_mutator_vtable kMutator = {
    [](int, grpc_socket_mutator*) { return true; },
    // All mutators are equal.
    [](grpc_socket_mutator*, grpc_socket_mutator*) { return 0; },
    [](grpc_socket_mutator* mutator) { delete mutator; },
    Mutate,
};

}  // namespace

void TuneForLoopback(::grpc::ChannelArguments& arguments) {
  auto* mutator = new grpc_socket_mutator;
  grpc_socket_mutator_init(mutator, &kMutator);
  // Takes ownership of the reference.
  arguments.SetSocketMutator(mutator);
}

void ServerSocketTuning::OnListening(int fd) {
  char name[16] = {};
  socklen_t size = sizeof name;
  if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &size) != 0) return;
  system_default_.assign(name, strnlen(name, size));
  SetCongestionControl(fd, kCongestionControl);
}

void ServerSocketTuning::OnAccepted(int fd) const {
  if (HasLoopbackPeer(fd)) {
    Tune(fd);
  } else if (!system_default_.empty()) {
    SetCongestionControl(fd, system_default_);
  }
}

}  // namespace hawser::rpc
