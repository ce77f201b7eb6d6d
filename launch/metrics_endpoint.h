// The pages of a worker for monitoring systems.

#ifndef HAWSER_LAUNCH_METRICS_ENDPOINT_H_
#define HAWSER_LAUNCH_METRICS_ENDPOINT_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "async/mutex.h"
#include "launch/call_metrics.h"
#include "net/http/http_server.h"
#include "rpc/agent/agent.h"
#include "telemetry/metrics.h"

namespace hawser::launch {

// Serves over HTTP:
//
//   /metrics  metrics of the worker, for Prometheus.
//   /healthz  200, or 503 once the worker was declared lost: restart it.
//   /readyz   200 while the worker serves; 503 while it joins and leaves.
//
// Thread-safe.
class MetricsEndpoint {
 public:
  // Errors of net::HttpServer::Start.
  static absl::StatusOr<std::unique_ptr<MetricsEndpoint>> Start(
      const std::string& address, bool allow_network);

  // The worker has joined. Both must outlive the endpoint.
  void SetJoined(const rpc::Agent& agent,
                 std::vector<const telemetry::MetricSource*> sources);
  // The worker begins to leave.
  void SetLeaving();

  const std::string& address() const { return server_->address(); }
  // To be added to the observers of the worker's calls.
  const std::shared_ptr<CallMetrics>& calls() const { return calls_; }

 private:
  enum class Phase { kJoining, kServing, kLeaving };

  MetricsEndpoint() = default;

  net::HttpPage Metrics();
  net::HttpPage Health();
  net::HttpPage Readiness();
  bool DeclaredLost() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::shared_ptr<CallMetrics> calls_ = std::make_shared<CallMetrics>();
  async::Mutex mutex_;
  Phase phase_ ABSL_GUARDED_BY(mutex_) = Phase::kJoining;
  // Null until the worker has joined.
  const rpc::Agent* agent_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::vector<const telemetry::MetricSource*> sources_ ABSL_GUARDED_BY(mutex_);
  // Destroyed first: its pages use the other members.
  std::unique_ptr<net::HttpServer> server_;
};

}  // namespace hawser::launch

#endif  // HAWSER_LAUNCH_METRICS_ENDPOINT_H_
