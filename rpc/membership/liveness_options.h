// Limits after which a silent or unreachable worker counts as lost.

#ifndef HAWSER_RPC_MEMBERSHIP_LIVENESS_OPTIONS_H_
#define HAWSER_RPC_MEMBERSHIP_LIVENESS_OPTIONS_H_

#include "absl/time/time.h"

namespace hawser::rpc {

// When a silent or unreachable worker counts as lost.
struct LivenessOptions {
  // How often a worker of which nothing was heard is asked, and how often a
  // worker renews its lease in the store.
  absl::Duration heartbeat_interval = absl::Milliseconds(500);
  // No answer for this long, though the connection stands; or a lease that was
  // not renewed for this long.
  absl::Duration silent_limit = absl::Seconds(3);
  // No connection for this long.
  absl::Duration unreachable_limit = absl::Milliseconds(1500);
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_MEMBERSHIP_LIVENESS_OPTIONS_H_
