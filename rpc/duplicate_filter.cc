#include "rpc/duplicate_filter.h"

namespace hawser::rpc {

bool DuplicateFilter::FirstSeen(Incarnation sender, uint64_t number) {
  async::MutexLock lock(&mutex_);
  std::unique_ptr<Window>& slot = windows_[sender];
  if (slot == nullptr) slot = std::make_unique<Window>();
  Window& window = *slot;
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
  windows_.erase(sender);
}

}  // namespace hawser::rpc
