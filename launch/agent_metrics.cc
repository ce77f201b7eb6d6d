#include "launch/agent_metrics.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/numbers.h"
#include "rpc/identity/worker_info.h"

namespace hawser::launch {
namespace {

using ::hawser::telemetry::Metric;
using ::hawser::telemetry::MetricFamily;
using ::hawser::telemetry::MetricType;

// A counter of DebugInfo and the metric that it becomes.
struct Mapping {
  std::string_view counter;
  const char* family;
  const char* help;
  MetricType type;
  // Null: the metric has no label.
  const char* label = nullptr;
  const char* label_value = nullptr;
  // The value of the metric is the counter times this.
  double unit = 1;
};

// Those of one family follow each other.
constexpr Mapping kMappings[] = {
    {"agent.client_active_calls", "calls_in_flight",
     "Calls that have not ended, by side.", MetricType::kGauge, "side",
     "client"},
    {"agent.server_active_calls", "calls_in_flight", "", MetricType::kGauge,
     "side", "server"},
    {"agent.queued_closures", "queue_depth",
     "Functions that wait for a thread of the pool.", MetricType::kGauge},
    {"agent.threads", "pool_threads", "Threads of the pool.",
     MetricType::kGauge},
    {"agent.idle_threads", "pool_idle_threads", "Idle threads of the pool.",
     MetricType::kGauge},
    {"agent.blocked_threads", "pool_blocked_threads",
     "Threads of the pool in functions that wait.", MetricType::kGauge},
    {"agent.tensor_bytes_sent", "tensor_bytes_total",
     "Bytes of elements of tensors in messages.", MetricType::kCounter,
     "direction", "sent"},
    {"agent.tensor_bytes_received", "tensor_bytes_total", "",
     MetricType::kCounter, "direction", "received"},
    {"agent.membership_events", "membership_events_total",
     "Workers that joined, left or were lost.", MetricType::kCounter},
    {"agent.store_reachable", "store_reachable",
     "1 if the store of the job replies, else 0.", MetricType::kGauge},
    {.counter = "agent.lease_age_ms",
     .family = "lease_age_seconds",
     .help = "Time since this worker renewed its lease in the store.",
     .type = MetricType::kGauge,
     .unit = 1e-3},
    {"agent.declared_lost", "worker_declared_lost",
     "1 if this worker was declared lost and must restart, else 0.",
     MetricType::kGauge},
    {"transport.connections_accepted", "connections_accepted_total",
     "Connections that this worker accepted.", MetricType::kCounter},
    {"transport.connections_refused", "connections_refused_total",
     "Connections that a limit refused.", MetricType::kCounter},
    {"stream.open", "streams_open", "Streams that this worker writes.",
     MetricType::kGauge},
    {"rref.owners", "rref_live", "Remote references, by role.",
     MetricType::kGauge, "role", "owner"},
    {"rref.users", "rref_live", "", MetricType::kGauge, "role", "user"},
    {"dist_autograd.contexts", "autograd_contexts",
     "Contexts of distributed autograd.", MetricType::kGauge},
    {"dist_autograd.backward_passes", "autograd_backward_passes",
     "Contexts with a running backward pass.", MetricType::kGauge},
    {"store.calls", "store_calls_total",
     "Calls of the store that this worker serves.", MetricType::kCounter},
    {"store.keys", "store_keys", "Keys of that store.", MetricType::kGauge},
    {"store.waiting_calls", "store_waiting_calls",
     "Calls that wait for keys of that store.", MetricType::kGauge},
};

// Of "peer.NAME.COUNTER".
constexpr Mapping kPeerMappings[] = {
    {"calls_sent", "peer_calls_sent_total",
     "Requests sent to a peer, each attempt of a call.", MetricType::kCounter},
    {"calls_failed", "peer_calls_failed_total",
     "Requests to a peer that ended with an error.", MetricType::kCounter},
    {"calls_served", "peer_calls_served_total",
     "Requests of a peer that were admitted.", MetricType::kCounter},
    {"bytes_sent", "peer_bytes_total", "Bytes of messages, by peer.",
     MetricType::kCounter, "direction", "sent"},
    {"bytes_received", "peer_bytes_total", "", MetricType::kCounter,
     "direction", "received"},
};

class Families {
 public:
  // Adds to the last family if it has the same name.
  void Add(const Mapping& mapping, Metric metric) {
    if (families_.empty() || families_.back().name != mapping.family) {
      families_.push_back({mapping.family, mapping.help, mapping.type});
    }
    if (mapping.label != nullptr) {
      metric.labels.emplace_back(mapping.label, mapping.label_value);
    }
    families_.back().metrics.push_back(std::move(metric));
  }

  std::vector<MetricFamily> Take() { return std::move(families_); }

 private:
  std::vector<MetricFamily> families_;
};

double Number(const std::string& text) {
  int64_t number = 0;
  // DebugInfo has decimal numbers.
  (void)absl::SimpleAtoi(text, &number);
  return static_cast<double>(number);
}

// Names of peers and the text after the last '.'.
using PeerCounters =
    std::map<std::string, std::map<std::string, double, std::less<>>>;

PeerCounters PeersIn(const std::map<std::string, std::string>& info) {
  constexpr std::string_view kPrefix = "peer.";
  PeerCounters peers;
  for (const auto& [name, value] : info) {
    const size_t end = name.rfind('.');
    if (!name.starts_with(kPrefix) || end < kPrefix.size()) continue;
    peers[name.substr(kPrefix.size(), end - kPrefix.size())]
         [name.substr(end + 1)] = Number(value);
  }
  return peers;
}

}  // namespace

std::vector<MetricFamily> AgentMetrics(const rpc::Agent& agent) {
  const std::map<std::string, std::string> info = agent.DebugInfo();
  Families families;
  for (const Mapping& mapping : kMappings) {
    const auto found = info.find(std::string(mapping.counter));
    if (found == info.end()) continue;
    families.Add(mapping, {.value = mapping.unit * Number(found->second)});
  }
  const PeerCounters peers = PeersIn(info);
  for (const Mapping& mapping : kPeerMappings) {
    for (const auto& [peer, counters] : peers) {
      const auto found = counters.find(mapping.counter);
      if (found == counters.end()) continue;
      families.Add(mapping,
                   {.labels = {{"peer", peer}}, .value = found->second});
    }
  }
  constexpr Mapping kPeerState = {"", "peer_state",
                                  "1 for a known worker, 0 once it is lost.",
                                  MetricType::kGauge};
  for (const rpc::WorkerInfo& worker : agent.workers()) {
    if (worker.name == agent.info().name) continue;
    families.Add(kPeerState, {.labels = {{"peer", worker.name}},
                              .value = agent.IsLost(worker) ? 0.0 : 1.0});
  }
  return families.Take();
}

}  // namespace hawser::launch
