#ifndef HAWSER_STORE_GRPC_WAIT_QUOTA_H_
#define HAWSER_STORE_GRPC_WAIT_QUOTA_H_

#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "net/server/shared_quota.h"
#include "store/grpc/server_limits.h"

namespace hawser::store::internal {

// kInvalidArgument naming the limit that is not positive.
absl::Status Validate(const StoreServerLimits& limits);

// Counts the calls that wait at a store server, by client. Thread-safe.
class WaitQuota {
 public:
  // One call that waits.
  using Ticket = net::SharedQuota::Ticket;

  explicit WaitQuota(const StoreServerLimits& limits);

  // kResourceExhausted, naming the client and the limit that a further call of
  // it, which waits for `keys`, exceeds.
  absl::StatusOr<Ticket> Admit(const std::string& client,
                               std::span<const std::string> keys);

 private:
  const std::shared_ptr<net::SharedQuota> quota_;
};

}  // namespace hawser::store::internal

#endif  // HAWSER_STORE_GRPC_WAIT_QUOTA_H_
