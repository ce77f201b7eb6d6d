// TCP proxy with which tests put faults between a client and a server.

#ifndef HAWSER_NET_TESTING_TCP_PROXY_H_
#define HAWSER_NET_TESTING_TCP_PROXY_H_

#include <list>
#include <string>
#include <thread>
#include <variant>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "async/mutex.h"

namespace hawser::net {

// Forwards connections to a server on this machine. If nothing serves there, a
// connection is reset at once. Needs no privileges. Thread-safe; one thread
// moves the bytes.
class TcpProxy {
 public:
  enum class Direction { kToServer = 0, kToClient = 1 };

  // Listens on a free port of 127.0.0.1. The server listens at a Unix socket,
  // which a server can have before it has a port of its own, or at a port of
  // 127.0.0.1. It need not serve before the first connection.
  explicit TcpProxy(std::string server_path);
  explicit TcpProxy(int server_port);
  ~TcpProxy();
  TcpProxy(const TcpProxy&) = delete;
  TcpProxy& operator=(const TcpProxy&) = delete;

  // "127.0.0.1:PORT".
  std::string address() const;
  int port() const { return port_; }

  // Changes the server of connections to come.
  void SetServerPort(int server_port);
  // While `on`, holds bytes and ends of connections that are sent that way,
  // as if the peer had vanished; connections stand, and new ones are accepted.
  // Afterwards they arrive.
  void BlackHole(Direction direction, bool on);
  // Discards bytes that are sent that way, until Reset.
  void Discard(Direction direction);
  // Delays bytes that are sent that way from now on.
  void SetDelay(Direction direction, absl::Duration delay);
  // Ends all connections with RST, at both ends, and Discard.
  void Reset();
  // Sends FIN that way on all connections. Bytes that are sent that way later
  // are lost; the other direction goes on.
  void HalfClose(Direction direction);

  int num_connections() const;

 private:
  struct Connection;
  using Server = std::variant<std::string, int>;

  explicit TcpProxy(Server server);

  void Run();
  void AcceptLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Moves what can be moved; false once the connection is over.
  bool MoveLocked(Connection& connection) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Wake();

  int listener_ = -1;
  int port_ = 0;
  int wake_ = -1;

  mutable async::Mutex mutex_;
  Server server_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  bool black_hole_[2] ABSL_GUARDED_BY(mutex_) = {false, false};
  bool discard_[2] ABSL_GUARDED_BY(mutex_) = {false, false};
  absl::Duration delay_[2] ABSL_GUARDED_BY(mutex_);
  std::list<Connection> connections_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace hawser::net

#endif  // HAWSER_NET_TESTING_TCP_PROXY_H_
