#include "rpc/testing/fakes/simulated_watches.h"

#include <utility>

namespace hawser::rpc {

async::Future<SimulatedWatches::Values> SimulatedWatches::Start(
    std::vector<store::WatchedKey> keys) {
  auto watch = std::make_shared<Watch>();
  watch->keys = std::move(keys);
  async::Future<Values> future = watch->promise.future();
  watch->promise.OnCancel([weak = std::weak_ptr<Watch>(watch)] {
    const auto cancelled = weak.lock();
    if (cancelled == nullptr) return;
    async::Future<Values> forwarded;
    {
      async::MutexLock lock(&cancelled->mutex);
      forwarded = std::move(cancelled->forwarded);
    }
    if (forwarded.valid()) forwarded.Cancel();
  });
  {
    async::MutexLock lock(&mutex_);
    std::erase_if(started_, [](const auto& old) { return old.expired(); });
    started_.push_back(watch);
  }
  Forward(watch);
  return future;
}

void SimulatedWatches::Forward(const std::shared_ptr<Watch>& watch) {
  if (HoldBack(watch)) return;
  async::Future<Values> forwarded = target_.WhenChanged(watch->keys);
  {
    async::MutexLock lock(&watch->mutex);
    watch->forwarded = forwarded;
  }
  // Cancelled before there was something to forward the cancellation to.
  if (watch->promise.done()) forwarded.Cancel();
  std::move(forwarded).OnReady(
      [weak = weak_from_this(), watch](const absl::StatusOr<Values>& values) {
        if (const auto self = weak.lock()) self->Complete(watch, values);
      });
}

void SimulatedWatches::Complete(const std::shared_ptr<Watch>& watch,
                                const absl::StatusOr<Values>& values) {
  async::Future<Values> ended;
  {
    async::MutexLock lock(&watch->mutex);
    ended = std::move(watch->forwarded);
  }
  if (watch->promise.done() || HoldBack(watch)) return;
  watch->promise.Set(values);
}

bool SimulatedWatches::HoldBack(const std::shared_ptr<Watch>& watch) {
  async::MutexLock lock(&mutex_);
  if (stopped_) return true;
  if (partitioned_) held_back_.push_back(watch);
  return partitioned_;
}

void SimulatedWatches::SetPartitioned(bool partitioned) {
  std::vector<std::shared_ptr<Watch>> again;
  {
    async::MutexLock lock(&mutex_);
    partitioned_ = partitioned;
    if (!partitioned) again.swap(held_back_);
  }
  for (const std::shared_ptr<Watch>& watch : again) {
    if (!watch->promise.done()) Forward(watch);
  }
}

void SimulatedWatches::Stop() {
  std::vector<std::weak_ptr<Watch>> started;
  {
    async::MutexLock lock(&mutex_);
    stopped_ = true;
    started.swap(started_);
    held_back_.clear();
  }
  for (const std::weak_ptr<Watch>& weak : started) {
    if (const auto watch = weak.lock()) watch->promise.future().Cancel();
  }
}

}  // namespace hawser::rpc
