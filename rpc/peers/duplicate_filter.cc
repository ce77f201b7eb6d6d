#include "rpc/peers/duplicate_filter.h"

namespace hawser::rpc {

bool DuplicateFilter::FirstSeen(Incarnation sender, uint64_t number) {
  async::MutexLock lock(&mutex_);
  std::unique_ptr<Window>& slot = windows_[sender];
  Window* known = slot.get();
  if (known == nullptr) {
    slot = std::make_unique<Window>();
    known = slot.get();
    order_.push_front(sender);
    known->place = order_.begin();
    if (order_.size() > kMaxSenders) {
      windows_.erase(order_.back());
      order_.pop_back();
    }
  } else if (known->place != order_.begin()) {
    order_.splice(order_.begin(), order_, known->place);
  }
  Window& window = *known;
  if (number > window.highest) {
    if (number - window.highest >= kWindow) {
      window.seen.reset();
    } else {
      for (uint64_t n = window.highest + 1; n < number; ++n) {
        window.seen.reset(n % kWindow);
      }
    }
    window.highest = number;
    window.seen.set(number % kWindow);
    return true;
  }
  if (window.highest - number >= kWindow || window.seen[number % kWindow]) {
    return false;
  }
  window.seen.set(number % kWindow);
  return true;
}

void DuplicateFilter::Forget(Incarnation sender) {
  async::MutexLock lock(&mutex_);
  auto it = windows_.find(sender);
  if (it == windows_.end()) return;
  order_.erase(it->second->place);
  windows_.erase(it);
}

size_t DuplicateFilter::num_senders() const {
  async::MutexLock lock(&mutex_);
  return windows_.size();
}

}  // namespace hawser::rpc
