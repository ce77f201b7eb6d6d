#ifndef HAWSER_LAUNCH_AGENT_METRICS_H_
#define HAWSER_LAUNCH_AGENT_METRICS_H_

#include <vector>

#include "rpc/agent/agent.h"
#include "telemetry/metrics.h"

namespace hawser::launch {

// The counters of Agent::DebugInfo as metrics, and the state of each peer.
// Names: docs/metrics.md.
std::vector<telemetry::MetricFamily> AgentMetrics(const rpc::Agent& agent);

}  // namespace hawser::launch

#endif  // HAWSER_LAUNCH_AGENT_METRICS_H_
