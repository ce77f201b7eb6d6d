#ifndef HAWSER_DIST_AUTOGRAD_CONTEXT_LIMITS_H_
#define HAWSER_DIST_AUTOGRAD_CONTEXT_LIMITS_H_

#include <cstddef>

#include "absl/status/status.h"

namespace hawser::dist_autograd {

// Limits on the distributed autograd contexts of a worker at one time. The call
// that would create a context above a limit fails with kResourceExhausted.
struct ContextLimits {
  // In total.
  size_t max_contexts = 262'144;
  // Contexts that messages of one other worker brought.
  size_t max_contexts_per_peer = 65'536;
};

// Returns kInvalidArgument, naming a limit that is not positive.
absl::Status Validate(const ContextLimits& limits);

}  // namespace hawser::dist_autograd

#endif  // HAWSER_DIST_AUTOGRAD_CONTEXT_LIMITS_H_
