// Limits on the streams that a worker serves.

#ifndef HAWSER_RPC_STREAM_STREAM_LIMITS_H_
#define HAWSER_RPC_STREAM_STREAM_LIMITS_H_

#include <cstddef>

#include "absl/time/time.h"

namespace hawser::rpc {

struct StreamLimits {
  // Maximum number of open streams per peer name. Positive.
  size_t max_streams_per_reader = 1024;
  // Maximum silence of a reader that is not a member. Positive.
  absl::Duration non_member_limit = absl::Seconds(60);
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_STREAM_STREAM_LIMITS_H_
