#ifndef HAWSER_LAUNCH_STORE_COUNTERS_H_
#define HAWSER_LAUNCH_STORE_COUNTERS_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "rpc/agent/service.h"
#include "store/grpc/server.h"

namespace hawser::launch {

// Counters, in Agent::DebugInfo of rank 0, of the store that it serves.
// Thread-safe.
class StoreCounters final : public rpc::Service {
 public:
  // `server` must outlive the agent.
  explicit StoreCounters(const store::StoreServer* server) : server_(*server) {}

  std::string_view name() const override { return "store"; }
  absl::Status Start(rpc::ServiceHost&) override { return absl::OkStatus(); }
  std::map<std::string, int64_t> DebugNumbers() const override {
    const store::StoreServerStats stats = server_.stats();
    return {{"calls", stats.num_calls},
            {"keys", stats.num_keys},
            {"waiting_calls", stats.num_waiting}};
  }

 private:
  const store::StoreServer& server_;
};

}  // namespace hawser::launch

#endif  // HAWSER_LAUNCH_STORE_COUNTERS_H_
