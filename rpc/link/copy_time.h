// Time that a peer takes to copy a message.

#ifndef HAWSER_RPC_LINK_COPY_TIME_H_
#define HAWSER_RPC_LINK_COPY_TIME_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"

namespace hawser::rpc {

// Upper bound for messages of up to 4 MB on a slow machine, and a millisecond
// for longer ones: a thread that expects the peer's next message polls for so
// long in addition.
inline absl::Duration CopyTime(size_t bytes) {
  constexpr int64_t kBytesPerNanosecond = 4;
  return std::min(
      absl::Milliseconds(1),
      absl::Nanoseconds(static_cast<int64_t>(bytes) / kBytesPerNanosecond));
}

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_LINK_COPY_TIME_H_
