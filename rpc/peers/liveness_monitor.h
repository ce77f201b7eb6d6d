// Failure detector based on heartbeats.

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

// Sends a heartbeat to each watched peer from which no message, or no reply,
// arrived for `heartbeat_interval`. A pair without calls backs off: after some
// time without a request the interval is half of that time, up to 30 s, since
// an idle worker learns through the membership that a peer died. Reports a peer
// lost, once, after a heartbeat to it or one interval earlier:
//
//   when another worker or incarnation replies at its address: at once;
//   when there is no connection to it for `unreachable_limit`, and its machine
//   refuses one;
//   when it sends no heartbeat reply for `silent_limit`, and its machine
//   refuses a connection or has accepted none in the last three intervals;
//   when it sends none for three times that limit, or was called and has not
//   replied for so long, although its own requests arrive: messages to it are
//   lost.
//
// So a peer that gets no processor time is not lost, nor one whose connection
// stalls because the network fails for moments again and again. One that is
// stopped, or hangs, stops renewing its lease, and is lost by the membership.
//
// Any message from a peer counts as a heartbeat reply. Times are by `clock`. If
// this process itself stalled for longer than two intervals, peers get a new
// grace period, since their messages may not have been read yet.
//
// Thread-safe.
class LivenessMonitor {
 public:
  // Sends one heartbeat; `done` receives its outcome, in any thread.
  using Ping = std::function<void(
      const std::shared_ptr<Peer>& peer, async::MonotonicTime deadline,
      absl::AnyInvocable<void(absl::Status) &&> done)>;
  // Passes to `done`, in any thread, whether the peer's machine accepts
  // connections for it, with the codes of Transport::Probe.
  using Probe = std::function<void(
      const std::shared_ptr<Peer>& peer, absl::Duration timeout,
      absl::AnyInvocable<void(absl::Status) &&> done)>;
  // Runs once per peer, in the clock's thread or in that of `done`.
  using OnLost = std::function<void(const std::shared_ptr<Peer>& peer,
                                    absl::Status status)>;

  // `clock` must outlive the monitor.
  LivenessMonitor(LivenessOptions options, async::Clock* clock, Ping ping,
                  Probe probe, OnLost on_lost);
  // Calls Stop.
  ~LivenessMonitor();

  void Watch(std::shared_ptr<Peer> peer);

  // After it returns, no Ping, Probe or OnLost is running or will run. Must not
  // be called from one.
  void Stop();

 private:
  class State;
  const std::shared_ptr<State> state_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_PEERS_LIVENESS_MONITOR_H_
