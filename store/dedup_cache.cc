#include "store/dedup_cache.h"

namespace hawser::store::internal {

DedupCache::DedupCache(size_t max_replies, size_t max_bytes)
    : applied_(max_replies, max_bytes) {}

async::Future<std::string> DedupCache::Once(
    Id id, absl::AnyInvocable<absl::StatusOr<std::string>() &&> apply) {
  async::Promise<std::string> promise;
  Reply reply = promise.future();
  {
    async::MutexLock lock(&mutex_);
    if (const Reply* known = applied_.Find(id)) return *known;
    const auto [it, is_new] = running_.emplace(id, reply);
    if (!is_new) return it->second;
  }
  absl::StatusOr<std::string> result = std::move(apply)();
  {
    async::MutexLock lock(&mutex_);
    running_.erase(id);
    applied_.Add(id, reply, result.ok() ? result->size() : 0);
  }
  promise.Set(std::move(result));
  return reply;
}

}  // namespace hawser::store::internal
