#ifndef HAWSER_DIST_AUTOGRAD_CONTEXT_LIMITS_H_
#define HAWSER_DIST_AUTOGRAD_CONTEXT_LIMITS_H_

#include <cstddef>

#include "absl/status/status.h"

namespace hawser::dist_autograd {

// Limits on the distributed autograd contexts that a worker holds at once. A
// context above a limit is refused with kResourceExhausted, which the call that
// would create it returns.
struct ContextLimits {
  // All together.
  size_t max_contexts = 262'144;
  // Of those that the messages of one other worker brought.
  size_t max_contexts_per_peer = 65'536;
};

// kInvalidArgument naming the limit that is not positive.
absl::Status Validate(const ContextLimits& limits);

}  // namespace hawser::dist_autograd

#endif  // HAWSER_DIST_AUTOGRAD_CONTEXT_LIMITS_H_
