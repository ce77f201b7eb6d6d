#include "ipc/alarm.h"

#include <algorithm>

namespace hawser::ipc {

bool Alarm::MustWake(async::MonotonicTime time) {
  if (time >= this->time()) return false;
  async::MutexLock lock(&mutex_);
  async::MonotonicTime present = this->time();
  if (time >= present) return false;
  asked_ = std::min(asked_, time);
  // Concurrent callers with a later time rely on this call, unless the thread
  // has woken up meanwhile.
  time_.compare_exchange_strong(present, time, std::memory_order_seq_cst);
  return true;
}

bool Alarm::FallAsleep(async::MonotonicTime now, async::MonotonicTime next) {
  async::MutexLock lock(&mutex_);
  if (anyone_sleeps()) return false;
  if (asked_ <= now) asked_ = async::kNever;
  time_.store(std::min(next, asked_), std::memory_order_seq_cst);
  return true;
}

}  // namespace hawser::ipc
