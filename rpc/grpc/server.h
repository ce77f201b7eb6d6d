// Server of unary methods over gRPC.

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
#include "net/per_peer_quota.h"
#include "rpc/grpc/limits.h"
#include "rpc/grpc/server_call.h"
#include "rpc/transport/gate.h"
#include "rpc/transport/transport.h"

namespace hawser::rpc {

// Each method is served in two forms: with its request as one message, and in
// fragments (proto/fragments.proto).
class GrpcServer {
 public:
  // Registers the services with `builder`, which builds the server afterwards.
  // `gate` is entered before starting an operation on `queue`. Calls that fail
  // the check of `credentials` are rejected before they reach a handler, as are
  // those of clients whose unread replies use up their share of `reply_quota`.
  GrpcServer(std::vector<TransportMethod> methods,
             ::grpc::ServerBuilder& builder,
             ::grpc::ServerCompletionQueue* queue, std::shared_ptr<Gate> gate,
             std::shared_ptr<const net::Credentials> credentials,
             std::shared_ptr<net::PerPeerQuota> reply_quota,
             size_t max_message_bytes, const GrpcLimits& limits);

  // Starts accepting calls of `server`, which the builder built.
  void Start(std::unique_ptr<::grpc::Server> server);

  // Stops accepting calls and ends current ones with kUnavailable. The queue
  // delivers events even after the gate is closed.
  void Stop();
  // Releases all gRPC objects. Call after the last event.
  void Release();

 private:
  const std::vector<TransportMethod> methods_;
  // By service name; gRPC needs one object per service.
  std::map<std::string, GrpcMethods> services_;
  const std::shared_ptr<const ServerParts> parts_;
  std::vector<ServedMethod> served_;
  std::unique_ptr<::grpc::Server> server_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_GRPC_SERVER_H_
