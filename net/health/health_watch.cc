#include "net/health/health_watch.h"

#include <utility>

namespace hawser::net {

using ::grpc::health::v1::HealthCheckRequest;
using ::grpc::health::v1::HealthCheckResponse;

grpc::Status CheckHealth(const Health& health,
                         const HealthCheckRequest& request,
                         HealthCheckResponse& response) {
  const std::optional<bool> serving = health.IsServing(request.service());
  if (!serving.has_value()) {
    return grpc::Status(grpc::StatusCode::NOT_FOUND,
                        "this server has no such service");
  }
  response.set_status(*serving ? HealthCheckResponse::SERVING
                               : HealthCheckResponse::NOT_SERVING);
  return grpc::Status::OK;
}

void HealthWatch::Begin(std::string service) {
  {
    async::MutexLock lock(&mutex_);
    service_ = std::move(service);
  }
  if (!health_->Observe(weak_from_this())) {
    Finish(grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED,
                        "too many callers are watching this server's health"));
    return;
  }
  OnWritten(true);
}

void HealthWatch::OnWritten(bool ok) {
  {
    async::MutexLock lock(&mutex_);
    busy_ = false;
    gone_ = gone_ || !ok;
  }
  Proceed();
}

void HealthWatch::OnCancelled() {
  {
    async::MutexLock lock(&mutex_);
    gone_ = true;
  }
  Proceed();
}

void HealthWatch::Proceed() {
  std::optional<ServingStatus> next;
  grpc::Status end;
  {
    async::MutexLock lock(&mutex_);
    if (busy_) return;
    const std::optional<bool> serving = health_->IsServing(service_);
    const ServingStatus now = !serving.has_value()
                                  ? HealthCheckResponse::SERVICE_UNKNOWN
                              : *serving ? HealthCheckResponse::SERVING
                                         : HealthCheckResponse::NOT_SERVING;
    if (gone_) {
      end = grpc::Status::CANCELLED;
    } else if (sent_ != now) {
      sent_ = next = now;
    } else if (health_->closed()) {
      end = grpc::Status(grpc::StatusCode::UNAVAILABLE,
                         "the server is shutting down");
    } else {
      return;
    }
    busy_ = true;
  }
  if (next.has_value()) {
    Write(*next);
  } else {
    Finish(end);
  }
}

}  // namespace hawser::net
