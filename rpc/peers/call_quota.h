// Per-peer limits on the calls that a worker serves at once.

#ifndef HAWSER_RPC_PEERS_CALL_QUOTA_H_
#define HAWSER_RPC_PEERS_CALL_QUOTA_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "net/per_peer_quota.h"

namespace hawser::rpc {

// Limits on the calls that a worker serves concurrently. Calls of functions and
// calls of services, such as references, are counted separately.
struct CallLimits {
  // Maximum number of calls, of all peers and per peer.
  int max_calls = 65536;
  int max_calls_per_peer = 16384;
  // Maximum size of one peer's requests whose arguments have not been read yet.
  size_t max_request_bytes_per_peer = size_t{4} << 30;
};

// kInvalidArgument, naming the limit, if a limit is not positive.
absl::Status Validate(const CallLimits& limits);

// Quota of calls, in total and per peer. Thread-safe.
class CallQuota {
 public:
  // Accounts for one call being served and the bytes of its request.
  using Reservation = net::PerPeerQuota::Reservation;

  explicit CallQuota(const CallLimits& limits);

  // Admits a further call with a request of that size. kResourceExhausted,
  // naming the peer and the limit, if it would exceed one.
  absl::StatusOr<Reservation> Admit(const std::string& peer,
                                    size_t request_bytes);

 private:
  net::PerPeerQuota quota_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_PEERS_CALL_QUOTA_H_
