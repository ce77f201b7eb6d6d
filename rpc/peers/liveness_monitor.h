// The monitor that finds lost workers by heartbeats.

#ifndef HAWSER_RPC_PEERS_LIVENESS_MONITOR_H_
#define HAWSER_RPC_PEERS_LIVENESS_MONITOR_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "async/clock.h"
#include "rpc/membership/liveness_options.h"
#include "rpc/peers/peer.h"

namespace hawser::rpc {

// Asks each watched peer for a heartbeat reply when there was none, or no
// answer, for `heartbeat_interval`, and reports it lost, once:
//
//   when its address answers as another worker or incarnation: at once;
//   when there is no connection to it for `unreachable_limit`;
//   when it sends no heartbeat reply for `silent_limit`;
//   when it was called, and answers nothing for three times that, though its
//   own requests come: it does not hear what is sent there.
//
// Any message from a peer counts as a heartbeat reply. Time is the clock's. If
// this process itself stalled for longer than two intervals, peers get a new
// grace: what they sent meanwhile may not have been read.
//
// Thread-safe.
class LivenessMonitor {
 public:
  // Sends one heartbeat; `done` gets its outcome, in any thread.
  using Ping = std::function<void(
      const std::shared_ptr<Peer>& peer, async::MonotonicTime deadline,
      absl::AnyInvocable<void(absl::Status) &&> done)>;
  // Runs once per peer, in the clock's thread or where `done` ran.
  using OnLost = std::function<void(const std::shared_ptr<Peer>& peer,
                                    absl::Status status)>;

  // `clock` outlives the monitor.
  LivenessMonitor(LivenessOptions options, async::Clock* clock, Ping ping,
                  OnLost on_lost);
  // Does Stop.
  ~LivenessMonitor();

  void Watch(std::shared_ptr<Peer> peer);

  // No Ping or OnLost is running or will run after it; so not from one.
  void Stop();

 private:
  class State;
  const std::shared_ptr<State> state_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_PEERS_LIVENESS_MONITOR_H_
