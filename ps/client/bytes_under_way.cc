#include "ps/client/bytes_under_way.h"

#include <chrono>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "async/blocking_region.h"
#include "async/clock.h"
#include "async/status_macros.h"

namespace hawser::ps {

absl::Status BytesUnderWay::Begin(int64_t bytes, absl::Duration timeout) {
  {
    const async::MutexLock lock(&mutex_);
    if (waiters_.empty() && Fits(bytes)) {
      bytes_ += bytes;
      return absl::OkStatus();
    }
  }
  const async::MonotonicTime deadline =
      async::AddDelay(std::chrono::steady_clock::now(), timeout);
  const async::BlockingRegion blocking;
  const async::MutexLock lock(&mutex_);
  const auto waiter = waiters_.emplace(waiters_.end());
  bool in_time = true;
  while (in_time && (waiter != waiters_.begin() || !Fits(bytes))) {
    in_time = waiter->WaitUntil(&mutex_, deadline);
  }
  const bool fits = waiter == waiters_.begin() && Fits(bytes);
  waiters_.erase(waiter);
  if (fits) bytes_ += bytes;
  WakeFirst();
  if (fits) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "a request of ", bytes, " bytes waited for ",
      absl::FormatDuration(timeout), " because requests of ", bytes_,
      " bytes are under way, of at most ", limit_,
      " (TableServiceOptions::max_bytes_under_way): the servers are too slow, "
      "or the limit is too low"));
}

void BytesUnderWay::End(int64_t bytes) {
  const async::MutexLock lock(&mutex_);
  bytes_ -= bytes;
  WakeFirst();
}

int64_t BytesUnderWay::bytes() const {
  const async::MutexLock lock(&mutex_);
  return bytes_;
}

absl::StatusOr<HeldBytes> HeldBytes::Begin(
    std::shared_ptr<BytesUnderWay> under_way, int64_t bytes,
    absl::Duration timeout) {
  RETURN_IF_ERROR(under_way->Begin(bytes, timeout));
  return HeldBytes(std::move(under_way), bytes);
}

}  // namespace hawser::ps
