#include "rpc/agent/outbound/call_deadline.h"

#include <algorithm>

#include "async/status_macros.h"
#include "rpc/agent/current_call.h"
#include "rpc/identity/call_options.h"
#include "rpc/identity/timeout.h"

namespace hawser::rpc {

absl::StatusOr<async::MonotonicTime> CallDeadline(
    const AgentState& state, std::optional<absl::Duration> timeout,
    bool inherit) {
  const absl::Duration limit = timeout.value_or(state.default_timeout());
  RETURN_IF_ERROR(CheckTimeout(limit));
  async::MonotonicTime deadline = async::kNever;
  if (limit != kNoTimeout) {
    deadline = async::AddDelay(state.clock().Now(),
                               absl::Ceil(limit, absl::Nanoseconds(1)));
  }
  if (inherit) {
    if (const CurrentCall* current = CurrentCall::Get()) {
      deadline = std::min(deadline, current->deadline());
    }
  }
  return deadline;
}

}  // namespace hawser::rpc
