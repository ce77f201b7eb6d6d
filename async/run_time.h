// Expected run time of a closure that runs many times.

#ifndef HAWSER_ASYNC_RUN_TIME_H_
#define HAWSER_ASYNC_RUN_TIME_H_

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

namespace hawser::async {

// A moving average of the last run times. It falls by an eighth of the
// difference, and rises by a quarter of it, but by at most half of itself and 5
// us: a run that was interrupted once does not change what is expected, and a
// closure that has become slow is noticed after a few runs.
//
// Thread-safe. Of two runs recorded concurrently, one may be lost.
class RunTime {
 public:
  void Record(std::chrono::nanoseconds run) {
    // 0 stands for unknown.
    const int64_t last = std::max<int64_t>(run.count(), 1);
    const int64_t before = expected_.load(std::memory_order_relaxed);
    int64_t after = last;
    if (before != 0 && last < before) after = before - (before - last + 7) / 8;
    if (before != 0 && last > before) {
      after = before +
              std::min((last - before + 3) / 4, before / 2 + kMaxStep.count());
    }
    expected_.store(after, std::memory_order_relaxed);
  }

  // Unset if no run was recorded.
  std::optional<std::chrono::nanoseconds> expected() const {
    const int64_t ns = expected_.load(std::memory_order_relaxed);
    if (ns == 0) return std::nullopt;
    return std::chrono::nanoseconds(ns);
  }

 private:
  static constexpr std::chrono::nanoseconds kMaxStep{5'000};

  std::atomic<int64_t> expected_{0};
};

}  // namespace hawser::async

#endif  // HAWSER_ASYNC_RUN_TIME_H_
