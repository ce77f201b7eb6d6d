// Listener of a gRPC server, with limits on its connections.

#ifndef HAWSER_NET_SERVER_LISTENER_H_
#define HAWSER_NET_SERVER_LISTENER_H_

#include <sys/socket.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "absl/status/statusor.h"
#include "async/clock.h"
#include "async/mutex.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"
#include "net/server/connection_handover.h"
#include "net/server/connection_limiter.h"
#include "net/server/connection_watch.h"
#include "net/server/held_connections.h"
#include "net/server/listening_socket.h"
#include "net/server/silent_connections.h"
#include "telemetry/log_rate_limiter.h"

namespace hawser::net {

struct ListenerOptions {
  // Maximum number of open connections; further ones are refused.
  int max_connections = 16384;
  // Same, per client address; all Unix socket connections count as one address.
  int max_connections_per_address = 4096;
  // Concurrent calls per connection, as the server tells its clients. A
  // connection with more is closed.
  int max_calls_per_connection = 256;
  // The longest request. A connection that sends more than twice as much, and
  // completes no message, is closed.
  size_t max_message_bytes = size_t{64} << 20;
  // While the process uses more memory and grows, the connection that has sent
  // the most bytes which complete no messages is closed; likewise above an
  // eighth of it, if the process grows by 8 times what all clients send. 0:
  // three quarters of what the process may use.
  size_t memory_watermark_bytes = 0;
  // File descriptors, of those that RLIMIT_NOFILE allows, reserved for the rest
  // of the process.
  int reserved_descriptors = 32;
  // Whether clients must use TLS, according to the credentials of AttachTo.
  bool tls = false;
  // Called in Open with each socket that listens, to set socket options;
  // optional.
  std::function<void(int fd)> prepare_listening = nullptr;
  // Same, with each connection before gRPC gets it.
  std::function<void(int fd)> prepare = nullptr;
};

// Accepts connections in a thread of its own and passes them to gRPC in
// another. gRPC
// 1.51's own listener stops permanently at the first failed accept(), such as
// when the process is out of descriptors (CVE-2023-4785), and has no limits.
//
// When the process is out of descriptors, this listener refuses each queued
// connection by means of a reserved descriptor, and accepts again as soon as
// descriptors are free. A refused connection is reset, so that the caller gets
// kUnavailable at once. The number of refused connections is logged at most
// once a minute.
//
// Over a Unix socket, only processes of this process's effective user and of
// root are served, according to the credentials that the kernel recorded on
// connect. Connections of other users are refused and logged likewise.
//
// Over TCP, gRPC gets a connection when its client has sent a byte, or has been
// silent for a second. A client that uses TLS at a server without it, or the
// reverse, is refused and logged likewise, with its address.
//
// Closes connections that make gRPC hold memory which it does not limit; see
// MisuseDetector. Connections from their addresses wait afterwards; see
// HeldConnections.
//
// Thread-safe.
class Listener {
 public:
  // Errors of ListeningSocket::Open.
  static absl::StatusOr<std::unique_ptr<Listener>> Open(
      std::string_view address, ListenerOptions options = {});

  // Calls Stop. After Start, the server must be shut down.
  ~Listener();

  // The address as given, with the port actually bound.
  const std::string& address() const { return socket_address_; }
  int port() const { return port_; }

  // Passes connections to the server built by `builder`; replaces
  // AddListeningPort. Call once.
  void AttachTo(grpc::ServerBuilder& builder,
                const std::shared_ptr<grpc::ServerCredentials>& credentials);

  // Runs in the listener's thread, at least every 250 ms while there are
  // connections.
  using OnWatch = std::function<void(async::MonotonicTime now)>;
  // Starts accepting connections. Call after the server is built. `on_watch` is
  // optional.
  void Start(OnWatch on_watch = nullptr);

  // Numbers of connections passed to gRPC, and refused because of a limit,
  // their user or their protocol.
  int64_t num_accepted() const { return num_accepted_.load(); }
  int64_t num_refused() const { return num_refused_.load(); }
  // Number of connections that were closed because their clients misused them.
  int64_t num_closed() const { return watch_.num_closed(); }

  // Stops accepting and closes the listening sockets. Call before the server is
  // shut down. Idempotent.
  void Stop();

 private:
  enum class Step { kContinue, kPause };

  Listener(std::unique_ptr<ListeningSocket> socket, ListenerOptions options,
           int wake);

  void Run(const OnWatch& on_watch);
  // Accepts all connections queued at `listening_fd`.
  Step AcceptAll(int listening_fd);
  // Accepts and refuses one connection when no descriptor is free.
  Step RefuseWithReserve(int listening_fd);
  // Keeps `connection` until its client speaks, or refuses it.
  void Admit(const SilentConnections::Connection& connection);
  // Passes the connection to gRPC, holds or refuses it.
  void PassOn(const SilentConnections::Spoken& spoken);
  void PassToGrpc(const SilentConnections::Connection& connection);
  void Refuse(int fd);
  // Refuses `fd` because of a limit, and logs it.
  void RefuseByLimit(int fd);
  // Refuses `connection` because it uses TLS, or does not; and logs it.
  void RefuseByProtocol(const SilentConnections::Connection& connection);
  // Refuses `fd` because of the user at the other end of a Unix socket, and
  // logs it.
  void RefuseByUser(int fd, std::string_view user);

  const ListenerOptions options_;
  const std::string socket_address_;
  const int port_;
  // An eventfd that Stop writes to.
  const int wake_;
  std::atomic<int64_t> num_accepted_{0};
  std::atomic<int64_t> num_refused_{0};
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  // Set by Start.
  std::unique_ptr<ConnectionHandover> handover_;
  std::thread thread_;

  // Used only by the thread while it runs.
  std::unique_ptr<ListeningSocket> socket_;
  int reserve_ = -1;
  ConnectionLimiter connections_;
  ConnectionWatch watch_;
  SilentConnections silent_;
  HeldConnections held_;
  // One for each reason.
  telemetry::LogRateLimiter refusal_log_limiter_;
  telemetry::LogRateLimiter user_log_limiter_;
  telemetry::LogRateLimiter protocol_log_limiter_;

  async::Mutex stop_mutex_;
};

}  // namespace hawser::net

#endif  // HAWSER_NET_SERVER_LISTENER_H_
