// Deadline of a call that begins now.

#ifndef HAWSER_RPC_AGENT_OUTBOUND_CALL_DEADLINE_H_
#define HAWSER_RPC_AGENT_OUTBOUND_CALL_DEADLINE_H_

#include <optional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "rpc/agent/state/agent_state.h"

namespace hawser::rpc {

// Returns the deadline of a call with `timeout`, or with the agent's default
// timeout; kNever for kNoTimeout. If `inherit`, not later than the deadline of
// the current inbound call. kInvalidArgument if the timeout is negative.
absl::StatusOr<async::MonotonicTime> CallDeadline(
    const AgentState& state, std::optional<absl::Duration> timeout,
    bool inherit);

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_AGENT_OUTBOUND_CALL_DEADLINE_H_
