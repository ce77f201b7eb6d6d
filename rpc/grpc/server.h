// Serves unary methods over gRPC.

#ifndef HAWSER_RPC_GRPC_SERVER_H_
#define HAWSER_RPC_GRPC_SERVER_H_

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "grpcpp/completion_queue.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "net/auth/credentials.h"
#include "rpc/grpc/limits.h"
#include "rpc/grpc/server_call.h"
#include "rpc/transport/gate.h"
#include "rpc/transport/transport.h"

namespace hawser::rpc {

// Each method is served twice: with its request as one message, and in
// fragments (proto/fragments.proto).
class GrpcServer {
 public:
  // Adds itself to `builder`, which builds the server after that. `gate` is
  // passed by whatever begins an operation on `queue`, which `num_threads`
  // threads poll. Calls that
  // `credentials` do not admit are refused before a handler sees them.
  GrpcServer(std::vector<TransportMethod> methods,
             ::grpc::ServerBuilder& builder,
             ::grpc::ServerCompletionQueue* queue, int num_threads,
             std::shared_ptr<Gate> gate,
             std::shared_ptr<const net::Credentials> credentials,
             size_t max_message_bytes, const GrpcLimits& limits);

  // Takes calls of `server`, which the builder built.
  void Start(std::unique_ptr<::grpc::Server> server);

  // Takes no calls any more and ends those there are with kUnavailable. The
  // queue still has events, also after the gate was closed.
  void Stop();
  // No event will come any more: lets go of everything of gRPC.
  void Release();

 private:
  const std::vector<TransportMethod> methods_;
  // By name; gRPC takes an object for one service.
  std::map<std::string, GrpcMethods> services_;
  const std::shared_ptr<const ServerParts> parts_;
  std::vector<ServedMethod> served_;
  std::unique_ptr<::grpc::Server> server_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_GRPC_SERVER_H_
