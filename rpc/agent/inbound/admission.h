// Checks of the header of an inbound call.

#ifndef HAWSER_RPC_AGENT_INBOUND_ADMISSION_H_
#define HAWSER_RPC_AGENT_INBOUND_ADMISSION_H_

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rpc/agent/inbound/inbound_call.h"
#include "rpc/agent/inbound/sender_directory.h"
#include "rpc/agent/state/agent_state.h"
#include "rpc/peers/call_quota.h"
#include "rpc/peers/peer.h"
#include "rpc/wire/message_codec.h"

namespace hawser::rpc {

// Rejects messages that are not for this worker, whose sender is not who it
// claims to be or is lost, or for which this worker has no capacity, before
// anything else of them is read. Thread-safe.
class Admission {
 public:
  // `senders` must outlive this object.
  Admission(std::shared_ptr<AgentState> state, SenderDirectory* senders)
      : state_(std::move(state)), senders_(senders) {}

  // What matters of the endpoint that is called.
  struct Target {
    // Whether a worker that leaves rejects the call.
    bool begins_work = false;
    // As MethodOptions::for_left_workers.
    bool for_left_workers = false;
    // Counts the call; null for none.
    CallQuota* quota = nullptr;
  };

  // Parses the request of `call` and fills in its fields up to `reservation`.
  //
  //   kInternal            the message is malformed.
  //   kInvalidArgument     the sender's name is not valid.
  //   kFailedPrecondition  it is for another job, worker or incarnation; the
  //                        sender, or this worker, was declared lost; or the
  //                        agent was shut down.
  //   kUnauthenticated, kPermissionDenied  the sender's certificate does not
  //                        match its claims.
  //   kUnavailable         this worker leaves, stops, or may be fenced; or it
  //                        treats the sender as lost.
  //   kResourceExhausted   the quota.
  absl::Status Admit(InboundCall& call, const Target& target);

  // Repeats the checks of the sender of an admitted call, whose sender was
  // unconfirmed and is a known peer now, and fills in what is known of it.
  // Errors as above.
  absl::Status AdmitConfirmed(InboundCall& call, const Target& target);

 private:
  // The checks of both, and of this worker.
  absl::Status AdmitSender(InboundCall& call, const Target& target,
                           const RequestHeader& header);
  absl::Status CheckDestination(const RequestHeader& header) const;
  absl::Status CheckThisWorker(const InboundCall& call, bool begins_work) const;
  // Returns the sender's Peer, or null if it is not known. kUnauthenticated if
  // the incarnation is that of a worker of another name.
  absl::StatusOr<std::shared_ptr<Peer>> SenderOf(const RequestHeader& header);
  absl::Status CheckSource(InboundCall& call, const Target& target,
                           const std::shared_ptr<Peer>& sender);
  absl::Status SourceIsLost(const InboundCall& call) const;
  // Adds the detail that an earlier copy of the call may have run.
  absl::Status MaybeApplied(const InboundCall& call, absl::Status status) const;

  const std::shared_ptr<AgentState> state_;
  SenderDirectory* const senders_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_AGENT_INBOUND_ADMISSION_H_
