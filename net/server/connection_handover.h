// Handover of accepted connections to gRPC.

#ifndef HAWSER_NET_SERVER_CONNECTION_HANDOVER_H_
#define HAWSER_NET_SERVER_CONNECTION_HANDOVER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "async/mutex.h"

namespace hawser::net {

// Passes connections to gRPC in threads of its own: gRPC reads from a new
// connection in the thread that passes it, for as long as its client sends
// without a pause. One thread passes connections in their order, and Relieve
// adds others while such clients keep it. They have a low priority, so that a
// new client that floods the server slows the others down little. Thread-safe.
class ConnectionHandover {
 public:
  struct Connection {
    int fd = -1;
    // The listening socket that it came from.
    int listening_fd = -1;
  };

  static constexpr size_t kMaxThreads = 16;

  // `pass` passes a connection to gRPC, in any thread.
  explicit ConnectionHandover(
      absl::AnyInvocable<void(const Connection&) const> pass);
  // Calls Stop, and waits for the threads. The server must be shut down: that
  // ends the connections which the threads may be reading.
  ~ConnectionHandover();
  ConnectionHandover(const ConnectionHandover&) = delete;
  ConnectionHandover& operator=(const ConnectionHandover&) = delete;

  // Passes the connection, which it owns from now on, after earlier ones.
  void Add(const Connection& connection);

  // Adds a thread, up to kMaxThreads, if the same connection waits as at the
  // last call. To be called regularly.
  void Relieve();

  // Closes the connections that wait, and those added later. Does not wait.
  void Stop();

 private:
  void Run();

  const absl::AnyInvocable<void(const Connection&) const> pass_;
  async::Mutex mutex_;
  async::CondVar changed_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<Connection> waiting_ ABSL_GUARDED_BY(mutex_);
  // Number of connections taken, and that number at the last Relieve.
  uint64_t num_taken_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t seen_taken_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::net

#endif  // HAWSER_NET_SERVER_CONNECTION_HANDOVER_H_
