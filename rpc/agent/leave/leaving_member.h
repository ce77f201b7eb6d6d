// Interface through which a worker leaves its job.

#ifndef HAWSER_RPC_AGENT_LEAVE_LEAVING_MEMBER_H_
#define HAWSER_RPC_AGENT_LEAVE_LEAVING_MEMBER_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
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

  // Returns all members, this worker included, and monitors the liveness of all
  // of them from now on.
  virtual std::vector<WorkerInfo> WatchAll() = 0;

  // kUnavailable, with an ErrorDetail, if a peer was lost without leaving.
  virtual absl::Status CheckPeers() const = 0;

  // Returns the barrier of that name for all workers of the job.
  virtual store::Barrier BarrierOf(std::string_view name) const = 0;

  // Returns the count of a worker's lease; empty if it has none. Blocks.
  virtual absl::StatusOr<std::string> ReadLease(Incarnation worker) = 0;

  // Releases the name of this worker and records that it left. Blocks.
  virtual absl::Status Withdraw() = 0;

  // Stops to monitor the liveness of peers.
  virtual void StopMonitoring() = 0;
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
