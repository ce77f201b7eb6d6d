// Interface of the control messages between agents.

#ifndef HAWSER_RPC_AGENT_MEMBERS_CONTROL_CALLS_H_
#define HAWSER_RPC_AGENT_MEMBERS_CONTROL_CALLS_H_

#include <memory>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "async/clock.h"
#include "rpc/peers/peer.h"

namespace hawser::rpc {

// Sends messages that consist of a header only, once each, also to a peer that
// has left. `done` runs once, in any thread. Thread-safe.
class ControlCalls {
 public:
  using Done = absl::AnyInvocable<void(absl::Status) &&>;

  virtual ~ControlCalls() = default;

  // Sends a heartbeat.
  virtual void Ping(const std::shared_ptr<Peer>& peer,
                    async::MonotonicTime deadline, Done done) = 0;
  // Notifies the peer that this worker leaves. The peer replies when it has no
  // more calls to this worker in flight.
  virtual void NotifyLeave(const std::shared_ptr<Peer>& peer,
                           async::MonotonicTime deadline, Done done) = 0;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_AGENT_MEMBERS_CONTROL_CALLS_H_
