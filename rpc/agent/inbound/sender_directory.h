// Interface through which inbound calls identify their senders.

#ifndef HAWSER_RPC_AGENT_INBOUND_SENDER_DIRECTORY_H_
#define HAWSER_RPC_AGENT_INBOUND_SENDER_DIRECTORY_H_

#include <memory>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "rpc/identity/worker_info.h"
#include "rpc/peers/peer.h"

namespace hawser::rpc {

// Implemented by PeerMembership. Thread-safe.
class SenderDirectory {
 public:
  virtual ~SenderDirectory() = default;

  // Returns null if that incarnation is not a known peer.
  virtual std::shared_ptr<Peer> FindSender(Incarnation incarnation) const = 0;

  // Whether this worker treats `worker` as lost.
  virtual bool IsLost(const WorkerInfo& worker) const = 0;
  // Whether the membership log says that it left or was lost.
  virtual bool HasDeparted(Incarnation incarnation) const = 0;

  // Whether this worker stalled and may have been declared lost meanwhile.
  virtual bool MaybeFenced() const = 0;

  // Records a message from a known peer, and monitors its liveness from now on.
  virtual void OnMessage(const std::shared_ptr<Peer>& sender) = 0;

  // Looks up in the store a sender that says it is a member and is not a known
  // peer. Runs `done` once, here or in a thread of the control executor: OK if
  // it is a known peer from now on.
  //
  //   kFailedPrecondition  the job has no member of that name and incarnation.
  //   kUnavailable         the store does not answer; the sender counts as
  //                        lost; or too many calls wait for lookups.
  virtual void Confirm(const WorkerInfo& sender,
                       absl::AnyInvocable<void(absl::Status) &&> done) = 0;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_AGENT_INBOUND_SENDER_DIRECTORY_H_
