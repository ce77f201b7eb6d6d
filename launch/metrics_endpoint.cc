#include "launch/metrics_endpoint.h"

#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "launch/agent_metrics.h"
#include "telemetry/log.h"
#include "telemetry/prometheus_text.h"

namespace hawser::launch {
namespace {

constexpr int kUnavailable = 503;

void Append(std::vector<telemetry::MetricFamily> from,
            std::vector<telemetry::MetricFamily>& to) {
  to.insert(to.end(), std::make_move_iterator(from.begin()),
            std::make_move_iterator(from.end()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<MetricsEndpoint>> MetricsEndpoint::Start(
    const std::string& address, bool allow_network) {
  std::unique_ptr<MetricsEndpoint> endpoint(new MetricsEndpoint());
  MetricsEndpoint* const self = endpoint.get();
  net::HttpServerOptions options;
  options.address = address;
  options.allow_network = allow_network;
  options.pages = {{"/metrics", [self] { return self->Metrics(); }},
                   {"/healthz", [self] { return self->Health(); }},
                   {"/readyz", [self] { return self->Readiness(); }}};
  ASSIGN_OR_RETURN(endpoint->server_,
                   net::HttpServer::Start(std::move(options)));
  telemetry::Log(
      telemetry::LogSeverity::kInfo,
      absl::StrCat("metrics at http://", endpoint->address(), "/metrics"));
  return endpoint;
}

void MetricsEndpoint::SetJoined(
    const rpc::Agent& agent,
    std::vector<const telemetry::MetricSource*> sources) {
  const async::MutexLock lock(&mutex_);
  agent_ = &agent;
  sources_ = std::move(sources);
  phase_ = Phase::kServing;
}

void MetricsEndpoint::SetLeaving() {
  const async::MutexLock lock(&mutex_);
  phase_ = Phase::kLeaving;
}

net::HttpPage MetricsEndpoint::Metrics() {
  std::vector<telemetry::MetricFamily> families = calls_->Metrics();
  {
    const async::MutexLock lock(&mutex_);
    if (agent_ != nullptr) Append(AgentMetrics(*agent_), families);
    for (const telemetry::MetricSource* source : sources_) {
      Append(source->Metrics(), families);
    }
  }
  return {.content_type = telemetry::kPrometheusContentType,
          .body = telemetry::PrometheusText(families)};
}

bool MetricsEndpoint::DeclaredLost() {
  return agent_ != nullptr && agent_->DebugInfo()["agent.declared_lost"] == "1";
}

net::HttpPage MetricsEndpoint::Health() {
  const async::MutexLock lock(&mutex_);
  if (DeclaredLost()) return {.status = kUnavailable, .body = "lost\n"};
  return {.body = "ok\n"};
}

net::HttpPage MetricsEndpoint::Readiness() {
  const async::MutexLock lock(&mutex_);
  if (DeclaredLost()) return {.status = kUnavailable, .body = "lost\n"};
  switch (phase_) {
    case Phase::kJoining:
      return {.status = kUnavailable, .body = "joining\n"};
    case Phase::kServing:
      return {.body = "ready\n"};
    case Phase::kLeaving:
      return {.status = kUnavailable, .body = "leaving\n"};
  }
  return {.status = kUnavailable};
}

}  // namespace hawser::launch
