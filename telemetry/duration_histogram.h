// Histogram of durations that many threads record.

#ifndef HAWSER_TELEMETRY_DURATION_HISTOGRAM_H_
#define HAWSER_TELEMETRY_DURATION_HISTOGRAM_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"

namespace hawser::telemetry {

// Counts durations by buckets of fixed bounds, as Prometheus' histograms do.
// Lock-free and thread-safe.
class DurationHistogram {
 public:
  // Upper bounds of the buckets, in seconds. Longer durations are in a bucket
  // of their own.
  static constexpr std::array<double, 19> kBounds = {
      1e-4,   2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 1e-1,
      2.5e-1, 5e-1,   1,    2.5,  5,      10,   25,   50,     100};

  struct Counts {
    // Durations of at most kBounds[i] and more than the bound before; then the
    // longer ones.
    std::array<int64_t, kBounds.size() + 1> buckets = {};
    double sum_seconds = 0;
  };

  void Record(absl::Duration duration) {
    const double seconds = absl::ToDoubleSeconds(duration);
    size_t bucket = 0;
    while (bucket < kBounds.size() && seconds > kBounds[bucket]) ++bucket;
    buckets_[bucket].fetch_add(1, std::memory_order_relaxed);
    sum_nanoseconds_.fetch_add(absl::ToInt64Nanoseconds(duration),
                               std::memory_order_relaxed);
  }

  // Numbers that are read one after another: they may differ by durations that
  // are recorded meanwhile.
  Counts counts() const {
    Counts counts;
    for (size_t i = 0; i < buckets_.size(); ++i) {
      counts.buckets[i] = buckets_[i].load(std::memory_order_relaxed);
    }
    counts.sum_seconds =
        static_cast<double>(sum_nanoseconds_.load(std::memory_order_relaxed)) /
        1e9;
    return counts;
  }

 private:
  std::array<std::atomic<int64_t>, kBounds.size() + 1> buckets_ = {};
  std::atomic<int64_t> sum_nanoseconds_{0};
};

}  // namespace hawser::telemetry

#endif  // HAWSER_TELEMETRY_DURATION_HISTOGRAM_H_
