#ifndef HAWSER_NET_TESTING_TCP_PROXY_H_
#define HAWSER_NET_TESTING_TCP_PROXY_H_

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "async/mutex.h"

namespace hawser::net {

// A TCP proxy on loopback in front of a server, which tests can interrupt.
class TcpProxy {
 public:
  // Forwards to 127.0.0.1:`server_port`. Closes connections at once if no
  // server listens there.
  explicit TcpProxy(int server_port);
  ~TcpProxy();

  std::string address() const;
  int port() const { return port_; }

  // Discards the server's replies until CloseConnections.
  void SwallowReplies() { swallow_ = true; }
  // Sets the server port for new connections.
  void SetServerPort(int server_port) { server_port_ = server_port; }
  // Closes all connections; new ones are forwarded.
  void CloseConnections();

 private:
  struct Connection;

  void Accept();
  void Pump(const std::shared_ptr<Connection>& connection, bool replies);

  std::atomic<int> server_port_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> swallow_{false};
  std::thread acceptor_;

  async::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::shared_ptr<Connection>> connections_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> pumps_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::net

#endif  // HAWSER_NET_TESTING_TCP_PROXY_H_
