#ifndef HAWSER_STORE_GRPC_WAIT_QUOTA_H_
#define HAWSER_STORE_GRPC_WAIT_QUOTA_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "net/per_peer_quota.h"
#include "store/grpc/server_limits.h"

namespace hawser::store::internal {

// kInvalidArgument, naming the limit, if a limit is not positive.
absl::Status Validate(const StoreServerLimits& limits);

// Per-client count of the calls waiting at a store server. Thread-safe.
class WaitQuota {
 public:
  // Accounts for one waiting call.
  using Reservation = net::PerPeerQuota::Reservation;

  explicit WaitQuota(const StoreServerLimits& limits);

  // Admits a call of `client` that waits for `num_keys` keys; `bytes` are those
  // of the keys and of the known values. kResourceExhausted, naming the client
  // and the limit, if it would exceed one.
  absl::StatusOr<Reservation> Admit(const std::string& client, int num_keys,
                                    size_t bytes);

 private:
  net::PerPeerQuota quota_;
};

}  // namespace hawser::store::internal

#endif  // HAWSER_STORE_GRPC_WAIT_QUOTA_H_
