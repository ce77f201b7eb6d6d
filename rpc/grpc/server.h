// Serves unary methods over gRPC.

#ifndef HAWSER_RPC_GRPC_SERVER_H_
#define HAWSER_RPC_GRPC_SERVER_H_

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "grpcpp/completion_queue.h"
#include "grpcpp/impl/service_type.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "net/credentials.h"
#include "rpc/gate.h"
#include "rpc/transport.h"

namespace hawser::rpc {

// The methods of one service as gRPC sees them: messages are passed on as
// bytes. A method that is registered, unlike one of a generic service, hands
// over a call together with its message, in one event.
class GrpcMethods final : public ::grpc::Service {
 public:
  // Returns the number by which Request knows the method.
  int Add(const std::string& path);

  void Request(int method, ::grpc::ServerContext* context,
               ::grpc::ByteBuffer* request,
               ::grpc::internal::ServerAsyncStreamingInterface* writer,
               ::grpc::ServerCompletionQueue* queue, void* tag) {
    RequestAsyncUnary(method, context, request, writer, queue, queue, tag);
  }

 private:
  int num_methods_ = 0;
};

class GrpcServer {
 public:
  // Adds itself to `builder`, which builds the server after that. `gate` is
  // passed by whatever begins an operation on `queue`. Calls that
  // `credentials` do not admit are refused before a handler sees them.
  GrpcServer(std::vector<TransportMethod> methods,
             ::grpc::ServerBuilder& builder,
             ::grpc::ServerCompletionQueue* queue, std::shared_ptr<Gate> gate,
             std::shared_ptr<const net::Credentials> credentials,
             size_t max_message_bytes);
  ~GrpcServer();

  // Takes calls of `server`, which the builder built.
  void Start(std::unique_ptr<::grpc::Server> server);

  // Takes no calls any more and ends those there are with kUnavailable. The
  // queue still has events, also after the gate was closed.
  void Stop();
  // No event will come any more: lets go of everything of gRPC.
  void Release();

 private:
  class ActiveCall;
  class Handle;

  // The calls that hold something of gRPC. Handlers may keep calls for longer
  // than the server lives.
  class Registry;

  // Waits for one call of a method.
  void Arm(int method);

  const std::vector<TransportMethod> methods_;
  // By name; gRPC takes an object for one service.
  std::map<std::string, GrpcMethods> services_;
  // Of each method: its service, and its number there.
  std::vector<std::pair<GrpcMethods*, int>> places_;
  ::grpc::ServerCompletionQueue* const queue_;
  const std::shared_ptr<Gate> gate_;
  const std::shared_ptr<const net::Credentials> credentials_;
  const size_t max_message_bytes_;
  std::unique_ptr<::grpc::Server> server_;
  const std::shared_ptr<Registry> registry_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_GRPC_SERVER_H_
