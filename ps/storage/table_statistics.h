// Counts of the requests for the rows of a table on one server.

#ifndef HAWSER_PS_STORAGE_TABLE_STATISTICS_H_
#define HAWSER_PS_STORAGE_TABLE_STATISTICS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "async/mutex.h"
#include "ps/storage/table_partition.h"
#include "telemetry/duration_histogram.h"

namespace hawser::ps {

// As in proto/ps.proto.
struct TableCounts {
  int64_t pulls = 0;
  int64_t keys_pulled = 0;
  int64_t bytes_pulled = 0;
  int64_t pushes_applied = 0;
  int64_t pushes_repeated = 0;
  int64_t keys_pushed = 0;
  int64_t bytes_pushed = 0;
};

// A snapshot that was saved.
struct SavedSnapshot {
  std::string name;
  // When it was complete.
  absl::Time time;
  // Time that it took.
  absl::Duration duration;
};

// Thread-safe. A request adds to a few numbers on one cache line.
class TableStatistics {
 public:
  void CountPull(size_t keys, size_t bytes) {
    Add(pulls_, 1);
    Add(keys_pulled_, keys);
    Add(bytes_pulled_, bytes);
  }

  // `bytes`: of the gradients.
  void CountPush(PushOutcome outcome, size_t keys, size_t bytes) {
    if (outcome == PushOutcome::kRepeated) {
      Add(pushes_repeated_, 1);
      return;
    }
    Add(pushes_applied_, 1);
    Add(keys_pushed_, keys);
    Add(bytes_pushed_, bytes);
  }

  TableCounts counts() const {
    return {.pulls = pulls_.load(std::memory_order_relaxed),
            .keys_pulled = keys_pulled_.load(std::memory_order_relaxed),
            .bytes_pulled = bytes_pulled_.load(std::memory_order_relaxed),
            .pushes_applied = pushes_applied_.load(std::memory_order_relaxed),
            .pushes_repeated = pushes_repeated_.load(std::memory_order_relaxed),
            .keys_pushed = keys_pushed_.load(std::memory_order_relaxed),
            .bytes_pushed = bytes_pushed_.load(std::memory_order_relaxed)};
  }

  void RecordSnapshot(const SavedSnapshot& snapshot) {
    snapshot_durations_.Record(snapshot.duration);
    const async::MutexLock lock(&mutex_);
    last_snapshot_ = snapshot;
  }
  // The last one; nullopt if there was none.
  std::optional<SavedSnapshot> last_snapshot() const {
    const async::MutexLock lock(&mutex_);
    return last_snapshot_;
  }
  const telemetry::DurationHistogram& snapshot_durations() const {
    return snapshot_durations_;
  }

  // Of the syncs of the log.
  telemetry::DurationHistogram& sync_durations() { return sync_durations_; }
  const telemetry::DurationHistogram& sync_durations() const {
    return sync_durations_;
  }

 private:
  using Number = std::atomic<int64_t>;

  static void Add(Number& number, size_t amount) {
    number.fetch_add(static_cast<int64_t>(amount), std::memory_order_relaxed);
  }

  alignas(64) Number pulls_{0};
  Number keys_pulled_{0};
  Number bytes_pulled_{0};
  Number pushes_applied_{0};
  Number pushes_repeated_{0};
  Number keys_pushed_{0};
  Number bytes_pushed_{0};
  alignas(64) telemetry::DurationHistogram sync_durations_;
  telemetry::DurationHistogram snapshot_durations_;
  mutable async::Mutex mutex_;
  std::optional<SavedSnapshot> last_snapshot_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_STORAGE_TABLE_STATISTICS_H_
