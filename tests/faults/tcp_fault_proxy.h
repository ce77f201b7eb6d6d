// A network between two programs, with faults on demand.

#ifndef HAWSER_TESTS_FAULTS_TCP_FAULT_PROXY_H_
#define HAWSER_TESTS_FAULTS_TCP_FAULT_PROXY_H_

#include <list>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "async/mutex.h"

namespace hawser::tests {

// Forwards TCP connections to a Unix socket, so that a server can be reached
// before it has a port of its own. Needs no privileges. Thread-safe; one thread
// moves the bytes.
class TcpFaultProxy {
 public:
  enum class Direction { kToServer = 0, kToClient = 1 };

  // Listens on a free port of 127.0.0.1. `server_path` need not be there before
  // the first connection.
  explicit TcpFaultProxy(std::string server_path);
  ~TcpFaultProxy();
  TcpFaultProxy(const TcpFaultProxy&) = delete;
  TcpFaultProxy& operator=(const TcpFaultProxy&) = delete;

  // "127.0.0.1:PORT".
  std::string address() const;

  // While `on`, nothing that is sent that way arrives, neither bytes nor the
  // end of a connection, though connections stand and new ones are accepted:
  // the peer vanished without a word. Afterwards it arrives.
  void BlackHole(Direction direction, bool on);
  // Each piece that is sent that way from now on arrives so much later.
  void SetDelay(Direction direction, absl::Duration delay);
  // Ends all connections there are with RST, at both ends.
  void Reset();
  // Sends FIN that way on all connections there are; what is sent that way
  // later is lost. The other direction goes on.
  void HalfClose(Direction direction);

  int num_connections() const;

 private:
  struct Connection;

  void Run();
  void AcceptLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Moves what can be moved; false once the connection is over.
  bool MoveLocked(Connection& connection) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Wake();

  const std::string server_path_;
  int listener_ = -1;
  int port_ = 0;
  int wake_ = -1;

  mutable async::Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  bool black_hole_[2] ABSL_GUARDED_BY(mutex_) = {false, false};
  absl::Duration delay_[2] ABSL_GUARDED_BY(mutex_);
  std::list<Connection> connections_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace hawser::tests

#endif  // HAWSER_TESTS_FAULTS_TCP_FAULT_PROXY_H_
