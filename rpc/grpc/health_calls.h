// The service grpc.health.v1.Health of a worker's server.

#ifndef HAWSER_RPC_GRPC_HEALTH_CALLS_H_
#define HAWSER_RPC_GRPC_HEALTH_CALLS_H_

#include <memory>

#include "grpcpp/completion_queue.h"
#include "grpcpp/server_builder.h"
#include "net/health/health.h"
#include "rpc/transport/gate.h"
#include "src/proto/grpc/health/v1/health.grpc.pb.h"

namespace hawser::rpc {

// Uses the completion queue of the worker's calls. A service of the callback
// API would add its own threads and pollers to the server, and gRPC distributes
// connections among them.
//
// Serves callers without a token, since probes have none.
class HealthCalls {
 public:
  // Registers the service with `builder`, which builds the server afterwards.
  // `gate` is entered before starting an operation on `queue`.
  HealthCalls(std::shared_ptr<net::Health> health,
              ::grpc::ServerBuilder& builder,
              ::grpc::ServerCompletionQueue* queue, std::shared_ptr<Gate> gate);
  // Must run after the last event of the queue.
  ~HealthCalls();

  // Starts accepting calls; call after the server is built. Close the Health
  // before shutting the server down, to end its watches.
  void Start();

 private:
  class CheckCall;
  class WatchCall;

  const std::shared_ptr<net::Health> health_;
  ::grpc::ServerCompletionQueue* const queue_;
  const std::shared_ptr<Gate> gate_;
  ::grpc::health::v1::Health::AsyncService service_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_GRPC_HEALTH_CALLS_H_
