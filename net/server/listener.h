// Accepts the connections of a gRPC server.

#ifndef HAWSER_NET_SERVER_LISTENER_H_
#define HAWSER_NET_SERVER_LISTENER_H_

#include <sys/socket.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "absl/status/statusor.h"
#include "async/mutex.h"
#include "async/tell_limit.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"
#include "net/server/listening_socket.h"
#include "net/server/open_connections.h"

namespace hawser::net {

struct ListenerOptions {
  // Connections open at once; further ones are refused until one is closed.
  int max_connections = 16384;
  // The same from one address; all that come over a Unix socket are one.
  int max_connections_per_address = 4096;
  // Descriptors that connections leave to the rest of the process, for files
  // and connections of its own, of those that RLIMIT_NOFILE allows.
  int reserved_descriptors = 32;
  // Sees each connection before gRPC does, to set socket options; optional.
  std::function<void(int fd)> prepare = nullptr;
};

// Takes connections in a thread of its own and hands them to gRPC. gRPC 1.51's
// own listener stops for good at the first accept() that fails, such as when
// the process is out of descriptors (CVE-2023-4785), and limits nothing.
//
// Out of descriptors, this one keeps the queue of connections moving by
// refusing each, with a descriptor that it holds in reserve, and serves again
// as soon as there are some. A refused connection is reset, so that the caller
// sees kUnavailable at once rather than waiting. How many were is told on
// stderr, once a minute at most.
//
// Over a Unix socket only processes of the effective user of this one, and of
// root, are served, as the system says who they were when they connected;
// connections of others are refused, and told of likewise.
//
// Thread-safe.
class Listener {
 public:
  // Errors of ListeningSocket::Open.
  static absl::StatusOr<std::unique_ptr<Listener>> Open(
      std::string_view address, ListenerOptions options = {});

  // Does Stop.
  ~Listener();

  // As given, with the port that was chosen.
  const std::string& address() const { return socket_address_; }
  int port() const { return port_; }

  // Lets the server that `builder` will build have the connections, in place of
  // AddListeningPort. Once.
  void AttachTo(grpc::ServerBuilder& builder,
                const std::shared_ptr<grpc::ServerCredentials>& credentials);

  // Begins to take connections, once the server was built.
  void Start();

  // Connections that were taken, and those that were refused, by a limit or for
  // their user.
  int64_t num_accepted() const { return num_accepted_.load(); }
  int64_t num_refused() const { return num_refused_.load(); }

  // No connection is taken any more, and none waits to be. To be called before
  // the server is shut down. Idempotent.
  void Stop();

 private:
  enum class Step { kContinue, kPause };

  Listener(std::unique_ptr<ListeningSocket> socket, ListenerOptions options,
           int wake);

  void Run();
  // Takes what waits at `listening_fd`.
  Step AcceptAll(int listening_fd);
  // Takes one and refuses it, when there is no descriptor for it.
  Step RefuseWithReserve(int listening_fd);
  // Hands `fd` on, or refuses it.
  void Admit(int listening_fd, int fd, const sockaddr_storage& peer);
  void Refuse(int fd);
  // Refuses `fd`, and says that a limit was the reason.
  void RefuseByLimit(int fd);
  // The same of the user at the other end of a Unix socket.
  void RefuseByUser(int fd, std::string_view user);

  const ListenerOptions options_;
  const std::string socket_address_;
  const int port_;
  // Written to by Stop.
  const int wake_;
  std::atomic<int64_t> num_accepted_{0};
  std::atomic<int64_t> num_refused_{0};
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  std::thread thread_;

  // Of the thread alone, while it runs.
  std::unique_ptr<ListeningSocket> socket_;
  int reserve_ = -1;
  OpenConnections connections_;
  // Of either reason.
  async::TellLimit tell_limit_;
  async::TellLimit tell_user_;

  async::Mutex stop_mutex_;
};

}  // namespace hawser::net

#endif  // HAWSER_NET_SERVER_LISTENER_H_
