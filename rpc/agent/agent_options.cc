#include "rpc/agent/agent_options.h"

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "net/auth/role.h"
#include "rpc/identity/worker_info.h"

namespace hawser::rpc {
namespace {

absl::Status MissingOption(absl::string_view name) {
  return absl::InvalidArgumentError(
      absl::StrCat("AgentOptions::", name, " is required"));
}

absl::Status ValidateWorker(const AgentOptions& options) {
  RETURN_IF_ERROR(ValidateWorkerName(options.name));
  RETURN_IF_ERROR(ValidateWorkerName(options.job));
  if (!WorkerId(options.rank).valid()) {
    return absl::InvalidArgumentError(
        absl::StrCat("AgentOptions::rank must be 0 to ", WorkerId::kMax,
                     ", not ", options.rank));
  }
  if (options.world_size.has_value() &&
      (*options.world_size < 1 || options.rank >= *options.world_size)) {
    return absl::InvalidArgumentError(
        absl::StrCat("AgentOptions::rank ", options.rank,
                     " is not below the world size ", *options.world_size));
  }
  for (const std::string& role : options.roles) {
    if (absl::Status status = net::ValidateRole(role); !status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("AgentOptions::roles: ", status.message()));
    }
  }
  return absl::OkStatus();
}

absl::Status Validate(const LivenessOptions& liveness) {
  if (liveness.heartbeat_interval <= absl::ZeroDuration() ||
      liveness.silent_limit <= liveness.heartbeat_interval ||
      liveness.unreachable_limit < absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        "AgentOptions::liveness needs a positive heartbeat_interval below "
        "silent_limit");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Validate(const AgentOptions& options) {
  RETURN_IF_ERROR(ValidateWorker(options));
  if (options.store == nullptr) return MissingOption("store");
  if (options.transport == nullptr) return MissingOption("transport");
  if (options.registry == nullptr) return MissingOption("registry");
  for (const auto& observer : options.observers) {
    if (observer == nullptr) {
      return absl::InvalidArgumentError(
          "AgentOptions::observers has a null pointer");
    }
  }
  if (options.default_timeout <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        "AgentOptions::default_timeout must be positive");
  }
  if (options.num_threads < 1) {
    return absl::InvalidArgumentError(
        "AgentOptions::num_threads must be positive");
  }
  RETURN_IF_ERROR(Validate(options.limits));
  return Validate(options.liveness);
}

}  // namespace hawser::rpc
