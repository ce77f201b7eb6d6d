// One caller that watches a server's health.

#ifndef HAWSER_NET_HEALTH_HEALTH_WATCH_H_
#define HAWSER_NET_HEALTH_HEALTH_WATCH_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "async/mutex.h"
#include "grpcpp/support/status.h"
#include "net/health/health.h"
#include "src/proto/grpc/health/v1/health.pb.h"

namespace hawser::net {

// The answer to Check. NOT_FOUND if the server has no such service.
grpc::Status CheckHealth(const Health& health,
                         const grpc::health::v1::HealthCheckRequest& request,
                         grpc::health::v1::HealthCheckResponse& response);

// The stream of Watch: sends the state first and then each change, one write at
// a time, leaving out what was overtaken; ends when the server stops. What
// brings it onto the wire derives from it. Thread-safe.
class HealthWatch : public Health::Observer,
                    public std::enable_shared_from_this<HealthWatch> {
 public:
  explicit HealthWatch(std::shared_ptr<Health> health)
      : health_(std::move(health)) {}

  // Sends the first state. Once.
  void Begin(std::string service);
  // A write has ended; not `ok` if the caller is gone.
  void OnWritten(bool ok);
  // The caller gave up.
  void OnCancelled();
  void OnHealthChanged() final { Proceed(); }

 protected:
  using ServingStatus = grpc::health::v1::HealthCheckResponse::ServingStatus;

  // Each runs while no other of them does: Write until its OnWritten, and
  // nothing comes after Finish.
  virtual void Write(ServingStatus status) = 0;
  virtual void Finish(const grpc::Status& status) = 0;

 private:
  void Proceed();

  const std::shared_ptr<Health> health_;

  async::Mutex mutex_;
  std::string service_ ABSL_GUARDED_BY(mutex_);
  // While a write is on its way, and after the end.
  bool busy_ ABSL_GUARDED_BY(mutex_) = true;
  bool gone_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<ServingStatus> sent_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::net

#endif  // HAWSER_NET_HEALTH_HEALTH_WATCH_H_
