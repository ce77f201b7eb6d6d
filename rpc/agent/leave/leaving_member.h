// Interface through which a worker leaves its job.

#ifndef HAWSER_RPC_AGENT_LEAVE_LEAVING_MEMBER_H_
#define HAWSER_RPC_AGENT_LEAVE_LEAVING_MEMBER_H_

#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "async/clock.h"
#include "async/future.h"
#include "rpc/identity/worker_info.h"
#include "store/barrier.h"

namespace hawser::rpc {

// The membership of this worker, for its graceful leave. Implemented by
// PeerMembership. Thread-safe. Methods that block access the store.
class LeavingMember {
 public:
  virtual ~LeavingMember() = default;

  // Returns all members, ordered by rank, this worker included.
  virtual std::vector<WorkerInfo> Members() const = 0;

  // Completes with kUnavailable and an ErrorDetail when a peer is lost without
  // leaving, or has been.
  virtual async::Future<void> WhenPeerLost() = 0;
  // Completes when all other members have left or are lost.
  virtual async::Future<void> WhenAlone() = 0;

  // Whether the last call of the membership to the store succeeded.
  virtual bool StoreReachable() const = 0;

  // Returns the barrier of that name for all workers of the job, with
  // `coordinator`.
  virtual store::Barrier BarrierOf(std::string_view name,
                                   Incarnation coordinator) const = 0;

  // Releases the name of this worker and records that it left. Blocks.
  virtual absl::Status Withdraw() = 0;

  // Stops to monitor the liveness of peers.
  virtual void StopMonitoring() = 0;
  // Stops to report departures of peers to services: from here on peers may
  // leave at any time.
  virtual void StopReporting() = 0;
  // Stops to renew the lease and to read the membership log. Blocks.
  virtual void StopMembership() = 0;

  // Notifies the monitored peers that this worker leaves. Completes when they
  // have no more calls to this worker in flight; for a peer that does not
  // reply, at `deadline` or after LivenessOptions::silent_limit. Peers learn of
  // the departure from the log as well, but later.
  virtual async::Future<void> NotifyPeers(async::MonotonicTime deadline) = 0;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_AGENT_LEAVE_LEAVING_MEMBER_H_
