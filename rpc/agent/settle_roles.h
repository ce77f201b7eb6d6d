// Roles of this worker, from its options and its certificate.

#ifndef HAWSER_RPC_AGENT_SETTLE_ROLES_H_
#define HAWSER_RPC_AGENT_SETTLE_ROLES_H_

#include "absl/status/status.h"
#include "rpc/agent/state/agent_state.h"
#include "rpc/transport/transport.h"

namespace hawser::rpc {

// Sets the roles of `state`, if it has none, to those that `transport` proves.
//
//   kInvalidArgument   the certificate lacks a role of the options.
//   kPermissionDenied  the worker is an observer, which cannot be a member.
absl::Status SettleRoles(const Transport& transport, AgentState& state);

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_AGENT_SETTLE_ROLES_H_
