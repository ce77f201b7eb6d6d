#include "rpc/peers/duplicate_filter.h"

namespace hawser::rpc {

bool DuplicateFilter::FirstSeen(Incarnation sender, uint64_t number) {
  async::MutexLock lock(&mutex_);
  const std::unique_ptr<Window>* known = windows_.Touch(sender);
  if (known == nullptr) {
    windows_.Add(sender, std::make_unique<Window>());
    known = windows_.Find(sender);
  }
  Window& window = **known;
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
  windows_.Erase(sender);
}

size_t DuplicateFilter::num_senders() const {
  async::MutexLock lock(&mutex_);
  return windows_.size();
}

}  // namespace hawser::rpc
