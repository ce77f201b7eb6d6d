#include "rpc/agent/state/agent_state.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "rpc/errors/error_detail.h"

namespace hawser::rpc {

thread_local const AgentState* AgentState::InsideScope::current_ = nullptr;

bool AgentState::BeginLeaving() {
  Phase running = Phase::kRunning;
  return phase_.compare_exchange_strong(running, Phase::kLeaving);
}

absl::Status AgentState::CheckRunning() const {
  switch (phase()) {
    case Phase::kNew:
    case Phase::kRunning:
    case Phase::kLeaving:
      if (!fenced()) return absl::OkStatus();
      return absl::FailedPreconditionError(absl::StrCat(
          ToString(self()), " was declared lost and must restart"));
    case Phase::kStopping:
      return absl::UnavailableError(
          absl::StrCat("the agent of ", ToString(self()), " is stopping"));
    case Phase::kStopped:
      break;
  }
  return absl::FailedPreconditionError(
      absl::StrCat("the agent of ", ToString(self()), " was shut down"));
}

absl::Status AgentState::CheckMayCall() const {
  return WithErrorDetail(CheckRunning(), self(), /*maybe_applied=*/false);
}

absl::Status AgentState::CallGateClosed() const {
  RETURN_IF_ERROR(CheckMayCall());
  return WithErrorDetail(
      absl::UnavailableError(
          absl::StrCat("the agent of ", ToString(self()), " is stopping")),
      self(), /*maybe_applied=*/false);
}

void AgentState::BeginOutboundCall() {
  num_calls_made_.fetch_add(1, std::memory_order_relaxed);
  outbound_calls_.Begin();
}

void AgentState::Post(async::Executor& executor,
                      absl::AnyInvocable<void() &&> action) {
  executor.Post(
      [state = shared_from_this(), action = std::move(action)]() mutable {
        Gate::Entry entry(&state->gate_);
        if (!entry) return;
        InsideScope inside(state.get());
        // Destroyed inside the gate.
        absl::AnyInvocable<void()&&> now = std::move(action);
        std::move(now)();
      });
}

absl::Duration AgentState::TimeUntil(async::MonotonicTime deadline) const {
  return async::TimeBetween(clock().Now(), deadline);
}

}  // namespace hawser::rpc
