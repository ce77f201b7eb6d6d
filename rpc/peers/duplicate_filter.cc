#include "rpc/peers/duplicate_filter.h"

namespace hawser::rpc {

template <class Key>
DuplicateFilter::Window& DuplicateFilter::WindowOf(
    net::RecentKeys<Key, std::unique_ptr<Window>>& windows, const Key& key) {
  const std::unique_ptr<Window>* known = windows.Touch(key);
  if (known == nullptr) {
    windows.Add(key, std::make_unique<Window>());
    known = windows.Find(key);
  }
  return **known;
}

bool DuplicateFilter::FirstSeen(const WorkerInfo& sender, uint64_t number) {
  async::MutexLock lock(&mutex_);
  Window& window =
      sender.id.valid()
          ? WindowOf(members_, sender.incarnation)
          : WindowOf(others_,
                     NameAndIncarnation(sender.name, sender.incarnation));
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

void DuplicateFilter::Forget(Incarnation member) {
  async::MutexLock lock(&mutex_);
  members_.Erase(member);
}

size_t DuplicateFilter::num_senders() const {
  async::MutexLock lock(&mutex_);
  return members_.size() + others_.size();
}

}  // namespace hawser::rpc
