#include "dist_autograd/context_limits.h"

namespace hawser::dist_autograd {

absl::Status Validate(const ContextLimits& limits) {
  if (limits.max_contexts == 0) {
    return absl::InvalidArgumentError(
        "ContextLimits::max_contexts must be positive");
  }
  if (limits.max_contexts_per_peer == 0) {
    return absl::InvalidArgumentError(
        "ContextLimits::max_contexts_per_peer must be positive");
  }
  return absl::OkStatus();
}

}  // namespace hawser::dist_autograd
