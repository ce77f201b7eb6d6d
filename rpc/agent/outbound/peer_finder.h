// Interface through which calls find their peers.

#ifndef HAWSER_RPC_AGENT_OUTBOUND_PEER_FINDER_H_
#define HAWSER_RPC_AGENT_OUTBOUND_PEER_FINDER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "async/clock.h"
#include "rpc/identity/call_options.h"
#include "rpc/peers/peer.h"

namespace hawser::rpc {

// Implemented by PeerMembership. Thread-safe.
class PeerFinder {
 public:
  virtual ~PeerFinder() = default;

  // Returns the peer for `to`. Looks a worker that is unknown or lost up in the
  // store, for at most a second and not beyond `deadline`. All errors have an
  // ErrorDetail.
  //
  //   kNotFound            the job has no such worker.
  //   kInvalidArgument     the name is not UTF-8.
  //   kFailedPrecondition  another incarnation has the name or rank now.
  //   kUnavailable, kDeadlineExceeded  the store does not reply.
  virtual absl::StatusOr<std::shared_ptr<Peer>> FindPeer(
      const Destination& to, async::MonotonicTime deadline) = 0;

  // Starts to monitor the liveness of `peer`, unless it is monitored.
  virtual void Watch(const std::shared_ptr<Peer>& peer) = 0;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_AGENT_OUTBOUND_PEER_FINDER_H_
