// Limit on the bytes of requests that a worker has under way.

#ifndef HAWSER_PS_CLIENT_BYTES_UNDER_WAY_H_
#define HAWSER_PS_CLIENT_BYTES_UNDER_WAY_H_

#include <cstdint>
#include <list>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/mutex.h"

namespace hawser::ps {

// Stops callers that send requests faster than they are answered. Thread-safe.
class BytesUnderWay {
 public:
  // `limit` is at least 1.
  explicit BytesUnderWay(int64_t limit) : limit_(limit) {}

  // Counts a request. Blocks, in a BlockingRegion, until it is within the limit
  // or the only one; callers go on in the order in which they came.
  // kResourceExhausted, and nothing is counted: not within `timeout`.
  absl::Status Begin(int64_t bytes, absl::Duration timeout);
  // The request is complete.
  void End(int64_t bytes);

  int64_t bytes() const;

 private:
  bool Fits(int64_t bytes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return bytes_ == 0 || bytes <= limit_ - bytes_;
  }
  void WakeFirst() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!waiters_.empty()) waiters_.front().NotifyOne();
  }

  const int64_t limit_;
  mutable async::Mutex mutex_;
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  // Of the callers that wait, in their order.
  std::list<async::CondVar> waiters_ ABSL_GUARDED_BY(mutex_);
};

// The bytes of a request, counted until the object is destroyed or assigned to.
class HeldBytes {
 public:
  // None.
  HeldBytes() = default;
  // As BytesUnderWay::Begin.
  static absl::StatusOr<HeldBytes> Begin(
      std::shared_ptr<BytesUnderWay> under_way, int64_t bytes,
      absl::Duration timeout);

  HeldBytes(HeldBytes&&) = default;
  HeldBytes& operator=(HeldBytes other) noexcept {
    std::swap(under_way_, other.under_way_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~HeldBytes() {
    if (under_way_ != nullptr) under_way_->End(bytes_);
  }

 private:
  HeldBytes(std::shared_ptr<BytesUnderWay> under_way, int64_t bytes)
      : under_way_(std::move(under_way)), bytes_(bytes) {}

  std::shared_ptr<BytesUnderWay> under_way_;
  int64_t bytes_ = 0;
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_CLIENT_BYTES_UNDER_WAY_H_
