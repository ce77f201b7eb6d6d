#ifndef HAWSER_STORE_DEDUP_CACHE_H_
#define HAWSER_STORE_DEDUP_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "async/future.h"
#include "async/mutex.h"
#include "net/recent_keys.h"

namespace hawser::store::internal {

// Cache of the replies to recent changes by request id. A retry gets the first
// reply and is not applied again. Thread-safe.
//
// Evicts the oldest replies beyond `max_replies` or `max_bytes`; a retry after
// eviction is applied again.
class DedupCache {
 public:
  struct Id {
    uint64_t client = 0;
    uint64_t sequence = 0;

    friend bool operator==(const Id&, const Id&) = default;
    template <typename H>
    friend H AbslHashValue(H state, const Id& id) {
      return H::combine(std::move(state), id.client, id.sequence);
    }
  };

  DedupCache(size_t max_replies, size_t max_bytes);

  // Returns the reply of `apply`, which runs in this call if the id is new. A
  // retry that arrives while the first call still runs gets the reply when that
  // completes.
  async::Future<std::string> Once(
      Id id, absl::AnyInvocable<absl::StatusOr<std::string>() &&> apply);

 private:
  using Reply = async::Future<std::string>;

  async::Mutex mutex_;
  // Changes that are being applied.
  absl::flat_hash_map<Id, Reply> running_ ABSL_GUARDED_BY(mutex_);
  // Those that were applied.
  net::RecentKeys<Id, Reply> applied_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::store::internal

#endif  // HAWSER_STORE_DEDUP_CACHE_H_
