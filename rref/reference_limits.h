#ifndef HAWSER_RREF_REFERENCE_LIMITS_H_
#define HAWSER_RREF_REFERENCE_LIMITS_H_

#include <cstddef>

#include "absl/status/status.h"

namespace hawser::rref {

// Per-peer limits on references.
struct ReferenceLimits {
  // Maximum number of forks that one worker has on values here, plus values
  // that its messages name before they are created. The creation, call or fork
  // request that would exceed it fails with kResourceExhausted.
  size_t max_references_per_peer = 1'000'000;
};

// Returns kInvalidArgument, naming a limit that is not positive.
absl::Status Validate(const ReferenceLimits& limits);

}  // namespace hawser::rref

#endif  // HAWSER_RREF_REFERENCE_LIMITS_H_
