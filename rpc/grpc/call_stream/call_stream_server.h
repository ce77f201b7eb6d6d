// Server end of call streams.

#ifndef HAWSER_RPC_GRPC_CALL_STREAM_CALL_STREAM_SERVER_H_
#define HAWSER_RPC_GRPC_CALL_STREAM_CALL_STREAM_SERVER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "grpcpp/completion_queue.h"
#include "grpcpp/server_builder.h"
#include "net/auth/credentials.h"
#include "net/per_peer_quota.h"
#include "rpc/grpc/call_stream/call_stream.h"
#include "rpc/transport/transport.h"

namespace hawser::rpc {

// Accepts call streams and serves their calls. Thread-safe.
class CallStreamServer {
 public:
  struct Options {
    std::vector<TransportMethod> methods;
    ::grpc::ServerCompletionQueue* queue = nullptr;
    std::shared_ptr<Gate> gate;
    std::shared_ptr<const net::Credentials> credentials;
    size_t max_message_bytes = 0;
    // For replies that clients have not read.
    std::shared_ptr<net::PerPeerQuota> reply_quota = nullptr;
  };

  // Registers the service at `builder`; call before the server is built. The
  // server must be destroyed before this object.
  CallStreamServer(Options options, ::grpc::ServerBuilder& builder);
  ~CallStreamServer();

  // Begins to accept streams. `poller` must outlive this object's last event.
  void Start(Poller* poller);

  // Number of streams accepted, and of the calls received over them.
  int64_t num_accepted() const;
  int64_t num_calls();

  // Ends all streams, whose clients get kUnavailable.
  void Stop();
  // Releases gRPC's objects after the last event.
  void Release();

 private:
  class Acceptor;
  class Stream;

  const std::shared_ptr<Acceptor> acceptor_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_GRPC_CALL_STREAM_CALL_STREAM_SERVER_H_
