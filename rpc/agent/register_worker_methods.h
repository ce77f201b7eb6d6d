// Handlers of the methods that every agent serves, besides calls of functions:
// heartbeats, leave notices and the list of functions.

#ifndef HAWSER_RPC_AGENT_REGISTER_WORKER_METHODS_H_
#define HAWSER_RPC_AGENT_REGISTER_WORKER_METHODS_H_

#include "absl/status/status.h"
#include "rpc/agent/inbound/inbound_calls.h"
#include "rpc/agent/members/peer_membership.h"

namespace hawser::rpc {

class FunctionRegistry;

// `functions` and `members` must outlive `inbound`.
absl::Status RegisterWorkerMethods(const FunctionRegistry& functions,
                                   PeerMembership& members,
                                   InboundCalls& inbound);

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_AGENT_REGISTER_WORKER_METHODS_H_
