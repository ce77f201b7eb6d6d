// The time for which a table was held, by which its rows age.

#ifndef HAWSER_PS_STORAGE_RETENTION_TABLE_TIME_H_
#define HAWSER_PS_STORAGE_RETENTION_TABLE_TIME_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

#include "async/clock.h"

namespace hawser::ps {

// Whole seconds since a table was created, without the time between the end of
// a server and its recovery. Thread-safe.
class TableTime {
 public:
  // Starts at 0. `clock` must outlive this object; null: the machine's.
  explicit TableTime(async::Clock* clock)
      : own_(clock == nullptr ? std::make_unique<async::RealClock>() : nullptr),
        clock_(clock == nullptr ? *own_ : *clock),
        zero_(Elapsed()) {}

  int64_t Now() const {
    return Elapsed() - zero_.load(std::memory_order_relaxed);
  }

  // Makes it `time`, unless it is later already. Not concurrently with another
  // call of this function.
  void AdvanceTo(int64_t time) {
    const int64_t now = Now();
    if (now < time) zero_.fetch_sub(time - now, std::memory_order_relaxed);
  }

 private:
  int64_t Elapsed() const {
    return std::chrono::duration_cast<std::chrono::seconds>(
               clock_.Now().time_since_epoch())
        .count();
  }

  const std::unique_ptr<async::RealClock> own_;
  async::Clock& clock_;
  std::atomic<int64_t> zero_;
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_STORAGE_RETENTION_TABLE_TIME_H_
