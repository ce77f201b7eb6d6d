#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rpc/agent/agent_parts.h"
#include "rpc/peers/peer_counters.h"

namespace hawser::rpc {
namespace {

// List of counters as text.
class NumberList {
 public:
  void Add(absl::string_view key, int64_t value) {
    list_[std::string(key)] = absl::StrCat(value);
  }
  // Adds `part` and a period before each name.
  void AddAll(absl::string_view part,
              const std::map<std::string, int64_t>& numbers) {
    for (const auto& [key, value] : numbers) {
      Add(absl::StrCat(part, ".", key), value);
    }
  }

  std::map<std::string, std::string> Take() { return std::move(list_); }

 private:
  std::map<std::string, std::string> list_;
};

void AddTotals(const std::string& name, const PeerTotals& totals,
               NumberList& list) {
  const auto add = [&](absl::string_view key, uint64_t value) {
    list.Add(absl::StrCat("peer.", name, ".", key),
             static_cast<int64_t>(value));
  };
  add("calls_sent", totals.sent);
  add("calls_failed", totals.failed);
  add("calls_outstanding", totals.sent - totals.ended);
  add("calls_served", totals.served);
  add("bytes_sent", totals.bytes_sent);
  add("bytes_received", totals.bytes_received);
}

}  // namespace

std::map<std::string, std::string> AgentParts::DebugInfo() const {
  NumberList list;
  list.Add("agent.client_active_calls", state_->outbound_calls().value());
  list.Add("agent.server_active_calls", state_->inbound_calls().value());
  list.Add("agent.server_active_async_calls",
           state_->async_inbound_calls().load());
  list.Add("agent.calls_made", static_cast<int64_t>(state_->num_calls_made()));
  const std::vector<std::shared_ptr<Peer>> peers = members_.peers();
  list.Add("agent.known_workers", static_cast<int64_t>(peers.size()));
  list.Add("agent.remembered_senders",
           static_cast<int64_t>(inbound_.num_remembered_senders()));
  if (threads_.pool() != nullptr) {
    const async::ThreadPoolStats stats = threads_.pool()->stats();
    list.Add("agent.threads", stats.num_threads);
    list.Add("agent.idle_threads", stats.num_idle);
    list.Add("agent.blocked_threads", stats.num_blocked);
    list.Add("agent.queued_closures", stats.num_queued);
  }
  const TransferTotals transfers = state_->transfers().totals();
  list.Add("agent.tensor_bytes_sent",
           static_cast<int64_t>(transfers.tensor_bytes_sent));
  list.Add("agent.tensor_bytes_received",
           static_cast<int64_t>(transfers.tensor_bytes_received));
  for (const std::shared_ptr<Peer>& peer : peers) {
    const PeerTotals peer_totals = peer->counters()->totals();
    if (peer_totals.sent + peer_totals.served == 0) continue;
    AddTotals(peer->info().name, peer_totals, list);
  }
  list.AddAll("transport", options_.transport->DebugNumbers());
  for (const Service* service : services_) {
    const std::string_view part = service->name();
    list.AddAll({part.data(), part.size()}, service->DebugNumbers());
  }
  if (members_.joined()) {
    list.Add("agent.membership_events",
             static_cast<int64_t>(members_.num_events()));
    list.Add("agent.store_reachable", members_.store_reachable() ? 1 : 0);
    list.Add("agent.lease_age_ms",
             absl::ToInt64Milliseconds(members_.lease_age(clock().Now())));
  }
  list.Add("agent.declared_lost", state_->fenced() ? 1 : 0);
  list.Add("agent.lost_workers", static_cast<int64_t>(members_.num_lost()));
  return list.Take();
}

}  // namespace hawser::rpc
