// Stream of a server's health to one caller.

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

// Fills the response to Check. NOT_FOUND if the server has no such service.
grpc::Status CheckHealth(const Health& health,
                         const grpc::health::v1::HealthCheckRequest& request,
                         grpc::health::v1::HealthCheckResponse& response);

// The stream of Watch: sends the current status and then each change, one write
// at a time, skipping outdated ones. Ends when the server stops. A subclass
// does the writes. Thread-safe.
class HealthWatch : public Health::Observer,
                    public std::enable_shared_from_this<HealthWatch> {
 public:
  explicit HealthWatch(std::shared_ptr<Health> health)
      : health_(std::move(health)) {}

  // Sends the first status. Call once.
  void Begin(std::string service);
  // Called when a write has ended; `ok` is false if the caller has
  // disconnected.
  void OnWritten(bool ok);
  // Called when the caller cancels.
  void OnCancelled();
  void OnHealthChanged() final { Proceed(); }

 protected:
  using ServingStatus = grpc::health::v1::HealthCheckResponse::ServingStatus;

  // Never run concurrently: a Write lasts until its OnWritten, and no call
  // follows Finish.
  virtual void Write(ServingStatus status) = 0;
  virtual void Finish(const grpc::Status& status) = 0;

 private:
  void Proceed();

  const std::shared_ptr<Health> health_;

  async::Mutex mutex_;
  std::string service_ ABSL_GUARDED_BY(mutex_);
  // True during a write and after Finish.
  bool busy_ ABSL_GUARDED_BY(mutex_) = true;
  bool gone_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<ServingStatus> sent_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::net

#endif  // HAWSER_NET_HEALTH_HEALTH_WATCH_H_
