// A server with two methods, and calls to it, for tests of the transport.

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

// Answers kEcho with its request, and keeps calls of kHold. Thread-safe but for
// held().
class EchoServer {
 public:
  static constexpr char kEcho[] = "/t.T/Echo";
  static constexpr char kHold[] = "/t.T/Hold";

  // Serves at `address`; where that fails the test has failed.
  explicit EchoServer(GrpcTransportOptions options = {},
                      const std::string& address = "127.0.0.1:0");

  GrpcTransport& transport() { return transport_; }
  const std::string& address() const { return address_; }

  // How many calls of kEcho came, and whether the last one came in fragments.
  int num_echoed();
  bool echoed_in_fragments();

  // Until so many calls are kept.
  void AwaitHeld(size_t count);
  // Until a call is kept, or the one that `reply` answers has ended, as one
  // does whose connection broke first. Whether one is kept.
  bool AwaitHeldUnlessEnded(const async::Future<std::string>& reply);
  // Calls that are kept, in the order in which they came. Not to be looked at
  // while more come.
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

// The reply to a call of `path`.
async::Future<std::string> Call(Connection& connection, std::string_view path,
                                std::string request,
                                async::MonotonicTime deadline = async::kNever);

// Until calls over `connection` come through. gRPC gives up on a connection
// that takes 2 s, and with it on the calls that wait for it; the test has
// failed if they end sooner.
void AwaitConnected(Connection& connection);

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_TESTING_ECHO_SERVER_H_
