// Per-peer limits on the calls that a worker serves at once.

#ifndef HAWSER_RPC_PEERS_CALL_QUOTA_H_
#define HAWSER_RPC_PEERS_CALL_QUOTA_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "net/server/shared_quota.h"

namespace hawser::rpc {

// Of calls that a worker serves at once. Calls of functions and those of
// services, such as references, are counted apart.
struct CallLimits {
  // From all peers, and from one.
  int max_calls = 65536;
  int max_calls_per_peer = 16384;
  // Of the requests of one peer, until their arguments have been read.
  size_t max_request_bytes_per_peer = size_t{4} << 30;
};

// kInvalidArgument naming the limit that is not positive.
absl::Status Validate(const CallLimits& limits);

// Counts calls by peer. Thread-safe.
class CallQuota {
 public:
  // One call that is being served; its bytes are those of its request.
  using Reservation = net::SharedQuota::Reservation;

  explicit CallQuota(const CallLimits& limits);

  // kResourceExhausted, naming the peer and the limit that a further call with
  // a request of so many bytes exceeds.
  absl::StatusOr<Reservation> Admit(const std::string& peer,
                                    size_t request_bytes);

 private:
  const std::shared_ptr<net::SharedQuota> quota_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_PEERS_CALL_QUOTA_H_
