// The service grpc.health.v1.Health for servers with the callback API.

#ifndef HAWSER_NET_HEALTH_HEALTH_SERVICE_H_
#define HAWSER_NET_HEALTH_HEALTH_SERVICE_H_

#include <memory>
#include <utility>

#include "net/health/health.h"
#include "src/proto/grpc/health/v1/health.grpc.pb.h"

namespace hawser::net {

// Serves callers without a token, since probes have none. Close the Health
// before shutting the server down.
class HealthService final : public grpc::health::v1::Health::CallbackService {
 public:
  explicit HealthService(std::shared_ptr<Health> health)
      : health_(std::move(health)) {}

 private:
  class Watching;

  grpc::ServerUnaryReactor* Check(
      grpc::CallbackServerContext* context,
      const grpc::health::v1::HealthCheckRequest* request,
      grpc::health::v1::HealthCheckResponse* response) override;
  grpc::ServerWriteReactor<grpc::health::v1::HealthCheckResponse>* Watch(
      grpc::CallbackServerContext* context,
      const grpc::health::v1::HealthCheckRequest* request) override;

  const std::shared_ptr<Health> health_;
};

}  // namespace hawser::net

#endif  // HAWSER_NET_HEALTH_HEALTH_SERVICE_H_
