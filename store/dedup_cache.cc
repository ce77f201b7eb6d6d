#include "store/dedup_cache.h"

namespace hawser::store::internal {

DedupCache::DedupCache(size_t max_replies, size_t max_bytes)
    : max_replies_(max_replies), max_bytes_(max_bytes) {}

async::Future<std::string> DedupCache::Once(
    Id id, absl::AnyInvocable<absl::StatusOr<std::string>() &&> apply) {
  async::Promise<std::string> promise;
  async::Future<std::string> reply = promise.future();
  {
    async::MutexLock lock(&mutex_);
    const auto [it, is_new] = replies_.emplace(id, reply);
    if (!is_new) return it->second;
  }
  absl::StatusOr<std::string> result = std::move(apply)();
  {
    async::MutexLock lock(&mutex_);
    const size_t bytes = result.ok() ? result->size() : 0;
    order_.emplace_back(id, bytes);
    bytes_ += bytes;
    ForgetOldLocked();
  }
  promise.Set(std::move(result));
  return reply;
}

void DedupCache::ForgetOldLocked() {
  while (order_.size() > max_replies_ || bytes_ > max_bytes_) {
    const auto [id, bytes] = order_.front();
    order_.pop_front();
    bytes_ -= bytes;
    replies_.erase(id);
  }
}

}  // namespace hawser::store::internal
