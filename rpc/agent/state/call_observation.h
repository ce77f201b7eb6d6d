// Observation of one call by all observers of an agent.

#ifndef HAWSER_RPC_AGENT_STATE_CALL_OBSERVATION_H_
#define HAWSER_RPC_AGENT_STATE_CALL_OBSERVATION_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "rpc/agent/call_observer.h"

namespace hawser::rpc {

using CallObservers = std::vector<std::shared_ptr<CallObserver>>;

// Passes the beginning and the end of one call on to the observers.
// Thread-safe.
class CallObservation {
 public:
  // Begins an observation; null if there are no observers. `observers` must
  // outlive the observation.
  static std::shared_ptr<CallObservation> Begin(const CallObservers& observers,
                                                const CallStart& start);

  explicit CallObservation(
      std::vector<std::unique_ptr<CallObserver::Call>> calls)
      : calls_(std::move(calls)) {}
  CallObservation(const CallObservation&) = delete;
  CallObservation& operator=(const CallObservation&) = delete;

  void AddRequest(uint64_t bytes) {
    request_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  }
  void AddReply(uint64_t bytes) {
    reply_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  }

  // Ends the observation; later calls have no effect.
  void End(const absl::Status& status);

 private:
  const std::vector<std::unique_ptr<CallObserver::Call>> calls_;
  std::atomic<uint64_t> request_bytes_{0};
  std::atomic<uint64_t> reply_bytes_{0};
  std::atomic<bool> ended_{false};
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_AGENT_STATE_CALL_OBSERVATION_H_
