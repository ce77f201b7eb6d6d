#ifndef HAWSER_STORE_DEDUP_CACHE_H_
#define HAWSER_STORE_DEDUP_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "async/future.h"
#include "async/mutex.h"

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
    auto operator<=>(const Id&) const = default;
  };

  DedupCache(size_t max_replies, size_t max_bytes);

  // Returns the reply of `apply`, which runs in this call if the id is new. A
  // retry that arrives while the first call still runs gets the reply when that
  // completes.
  async::Future<std::string> Once(
      Id id, absl::AnyInvocable<absl::StatusOr<std::string>() &&> apply);

 private:
  void ForgetOldLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t max_replies_;
  const size_t max_bytes_;

  async::Mutex mutex_;
  std::map<Id, async::Future<std::string>> replies_ ABSL_GUARDED_BY(mutex_);
  // Completed changes with their sizes, oldest first.
  std::deque<std::pair<Id, size_t>> order_ ABSL_GUARDED_BY(mutex_);
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace hawser::store::internal

#endif  // HAWSER_STORE_DEDUP_CACHE_H_
