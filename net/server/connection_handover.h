// Handover of accepted connections to gRPC.

#ifndef HAWSER_NET_SERVER_CONNECTION_HANDOVER_H_
#define HAWSER_NET_SERVER_CONNECTION_HANDOVER_H_

#include <deque>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "async/mutex.h"

namespace hawser::net {

// Passes connections to gRPC in a thread of its own: gRPC reads from a new
// connection in the thread that passes it, for as long as its client sends
// without a pause, and takes no other connection meanwhile. Thread-safe.
class ConnectionHandover {
 public:
  struct Connection {
    int fd = -1;
    // The listening socket that it came from.
    int listening_fd = -1;
  };

  // `pass` passes a connection to gRPC.
  explicit ConnectionHandover(absl::AnyInvocable<void(const Connection&)> pass);
  // Calls Stop, and waits for the thread. The server must be shut down: that
  // ends the connection which the thread may be reading.
  ~ConnectionHandover();
  ConnectionHandover(const ConnectionHandover&) = delete;
  ConnectionHandover& operator=(const ConnectionHandover&) = delete;

  // Passes the connection, which it owns from now on, after earlier ones.
  void Add(const Connection& connection);

  // Closes the connections that wait, and those added later. Does not wait.
  void Stop();

 private:
  void Run();

  absl::AnyInvocable<void(const Connection&)> pass_;
  async::Mutex mutex_;
  async::CondVar changed_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<Connection> waiting_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace hawser::net

#endif  // HAWSER_NET_SERVER_CONNECTION_HANDOVER_H_
