// Interface through which inbound calls identify their senders.

#ifndef HAWSER_RPC_AGENT_INBOUND_SENDER_DIRECTORY_H_
#define HAWSER_RPC_AGENT_INBOUND_SENDER_DIRECTORY_H_

#include <memory>
#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
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

  // Looks up, in the background, the sender of a message that is not a known
  // peer, unless it is known not to be a member.
  virtual void LearnAbout(const WorkerInfo& sender) = 0;

  // Reads the record of a name from the store. Blocks. nullopt if it is free.
  virtual absl::StatusOr<std::optional<WorkerInfo>> LookUp(
      std::string_view name) = 0;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_AGENT_INBOUND_SENDER_DIRECTORY_H_
