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

// Serves on the queue that the worker's calls come from: a service of the
// callback API would bring threads and pollers of its own into the server,
// among which gRPC shares connections out.
//
// Answers anyone who can connect, without a token: a probe has none.
class HealthCalls {
 public:
  // Adds itself to `builder`, which builds the server after that. `gate` is
  // passed by whatever begins an operation on `queue`.
  HealthCalls(std::shared_ptr<net::Health> health,
              ::grpc::ServerBuilder& builder,
              ::grpc::ServerCompletionQueue* queue, std::shared_ptr<Gate> gate);
  // After the last event of the queue.
  ~HealthCalls();

  // Takes calls, once the server was built, until it is shut down. The health
  // must be closed before that, which ends those that watch.
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
