// Test server with two methods, and calls to it.

#ifndef HAWSER_RPC_TESTING_ECHO_SERVER_H_
#define HAWSER_RPC_TESTING_ECHO_SERVER_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "async/clock.h"
#include "async/future.h"
#include "async/mutex.h"
#include "rpc/grpc/transport.h"
#include "rpc/transport/transport.h"

namespace hawser::rpc {

// Replies to kEcho with its request, and holds calls of kHold. Thread-safe
// except for held().
class EchoServer {
 public:
  static constexpr char kEcho[] = "/t.T/Echo";
  static constexpr char kHold[] = "/t.T/Hold";

  // Serves at `address`; the test fails if that fails.
  explicit EchoServer(GrpcTransportOptions options = {},
                      const std::string& address = "127.0.0.1:0");

  GrpcTransport& transport() { return transport_; }
  const std::string& address() const { return address_; }

  // Number of calls of kEcho, and whether the last one was sent in fragments.
  int num_echoed();
  bool echoed_in_fragments();

  // Waits until `count` calls are held.
  void AwaitHeld(size_t count);
  // Waits until a call is held, or the call of `reply` has ended, for example
  // because its connection broke first. Returns whether a call is held.
  bool AwaitHeldUnlessEnded(const async::Future<std::string>& reply);
  // The held calls, in order of arrival. Must not be accessed while calls may
  // arrive.
  std::vector<std::unique_ptr<IncomingCall>>& held() { return held_; }

 private:
  void Echo(IncomingCall& call);

  async::Mutex mutex_;
  async::CondVar changed_;
  int num_echoed_ ABSL_GUARDED_BY(mutex_) = 0;
  bool echoed_in_fragments_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::unique_ptr<IncomingCall>> held_;
  GrpcTransport transport_;
  std::string address_;
};

// Makes a call of `path` and returns the reply.
async::Future<std::string> Call(Connection& connection, std::string_view path,
                                std::string request,
                                async::MonotonicTime deadline = async::kNever);

// Makes calls over `connection` until one uses a call stream of `server`.
void AwaitCallStream(EchoServer& server, Connection& connection);

// Waits until calls over `connection` succeed. gRPC gives up a connection
// attempt after 2 s and fails the calls that wait for it; the test fails if
// they end sooner.
void AwaitConnected(Connection& connection);

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_TESTING_ECHO_SERVER_H_
