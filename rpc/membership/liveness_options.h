// Limits after which a silent or unreachable worker counts as lost.

#ifndef HAWSER_RPC_MEMBERSHIP_LIVENESS_OPTIONS_H_
#define HAWSER_RPC_MEMBERSHIP_LIVENESS_OPTIONS_H_

#include "absl/time/time.h"

namespace hawser::rpc {

// Options of failure detection.
struct LivenessOptions {
  // Interval of heartbeats to a silent worker, and of the renewal of a worker's
  // lease in the store.
  absl::Duration heartbeat_interval = absl::Milliseconds(500);
  // A worker is lost if it does not reply for this long over an open
  // connection, or does not renew its lease for this long.
  absl::Duration silent_limit = absl::Seconds(3);
  // A worker is lost if it cannot be connected to for this long.
  absl::Duration unreachable_limit = absl::Milliseconds(1500);
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_MEMBERSHIP_LIVENESS_OPTIONS_H_
