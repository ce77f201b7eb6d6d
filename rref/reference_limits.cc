#include "rref/reference_limits.h"

namespace hawser::rref {

absl::Status Validate(const ReferenceLimits& limits) {
  if (limits.max_references_per_peer > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "ReferenceLimits::max_references_per_peer must be positive");
}

}  // namespace hawser::rref
