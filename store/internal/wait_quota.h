#ifndef HAWSER_STORE_INTERNAL_WAIT_QUOTA_H_
#define HAWSER_STORE_INTERNAL_WAIT_QUOTA_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/mutex.h"
#include "store/store_server_limits.h"

namespace hawser::store::internal {

// kInvalidArgument naming the limit that is not positive.
absl::Status Validate(const StoreServerLimits& limits);

// Counts the calls that wait at a store server, by client. Thread-safe. Costs
// nothing for clients that do not wait.
class WaitQuota : public std::enable_shared_from_this<WaitQuota> {
 public:
  // One call that waits, until it is destroyed.
  class Ticket {
   public:
    Ticket() = default;
    Ticket(Ticket&& other) noexcept;
    Ticket& operator=(Ticket&&) = delete;
    ~Ticket();

   private:
    friend class WaitQuota;

    std::shared_ptr<WaitQuota> quota_;
    std::string client_;
    size_t bytes_ = 0;
  };

  static std::shared_ptr<WaitQuota> Create(const StoreServerLimits& limits);

  // kResourceExhausted, naming the client and the limit that a further call of
  // it, which waits for `keys`, exceeds.
  absl::StatusOr<Ticket> Admit(const std::string& client,
                               std::span<const std::string> keys);

 private:
  struct Usage {
    int num_calls = 0;
    size_t bytes = 0;
  };

  explicit WaitQuota(const StoreServerLimits& limits) : limits_(limits) {}

  void Release(const std::string& client, size_t bytes);

  const StoreServerLimits limits_;

  async::Mutex mutex_;
  Usage all_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<std::string, Usage> clients_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::store::internal

#endif  // HAWSER_STORE_INTERNAL_WAIT_QUOTA_H_
