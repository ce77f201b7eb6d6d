#ifndef HAWSER_RREF_REFERENCE_LIMITS_H_
#define HAWSER_RREF_REFERENCE_LIMITS_H_

#include <cstddef>

#include "absl/status/status.h"

namespace hawser::rref {

// Limits on the references of peers for which a worker keeps values.
struct ReferenceLimits {
  // Forks of one worker on values here, and values that its messages name
  // before they are created. One more is refused with kResourceExhausted to the
  // creation, the call or the fork request that wants it.
  size_t max_references_per_peer = 1'000'000;
};

// kInvalidArgument naming the limit that is not positive.
absl::Status Validate(const ReferenceLimits& limits);

}  // namespace hawser::rref

#endif  // HAWSER_RREF_REFERENCE_LIMITS_H_
