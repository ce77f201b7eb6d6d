#include "rpc/transport/cancellation.h"

#include <utility>

namespace hawser::rpc {

void Cancellation::Cancel() {
  std::unordered_map<uint64_t, async::Task> callbacks;
  {
    async::MutexLock lock(&mutex_);
    if (cancelled()) return;
    cancelled_.store(true, std::memory_order_release);
    callbacks.swap(callbacks_);
  }
  for (auto& [id, callback] : callbacks) std::move(callback).Run();
}

Cancellation::Registration Cancellation::OnCancel(
    absl::AnyInvocable<void() &&> callback) {
  {
    async::MutexLock lock(&mutex_);
    if (!cancelled()) {
      const uint64_t id = ++last_id_;
      callbacks_.try_emplace(id, async::Task(std::move(callback)));
      return Registration(weak_from_this(), id);
    }
  }
  std::move(callback)();
  return Registration();
}

Cancellation::Registration& Cancellation::Registration::operator=(
    Registration&& other) noexcept {
  Reset();
  cancellation_ = std::move(other.cancellation_);
  id_ = other.id_;
  return *this;
}

void Cancellation::Registration::Reset() {
  std::shared_ptr<Cancellation> cancellation = cancellation_.lock();
  cancellation_.reset();
  if (cancellation == nullptr) return;
  async::Task removed;
  async::MutexLock lock(&cancellation->mutex_);
  auto it = cancellation->callbacks_.find(id_);
  if (it == cancellation->callbacks_.end()) return;
  removed = std::move(it->second);
  cancellation->callbacks_.erase(it);
}

}  // namespace hawser::rpc
