// Numbers of samples that the processes of a role have processed.

#ifndef HAWSER_LAUNCH_JOB_SAMPLE_COUNTS_H_
#define HAWSER_LAUNCH_JOB_SAMPLE_COUNTS_H_

#include <cstdint>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "async/future.h"
#include "async/mutex.h"

namespace hawser::launch {

// Counts of the samples of each process of a role. Thread-safe.
class SampleCounts {
 public:
  explicit SampleCounts(int num_processes);

  // Records that process `index` has processed `samples` since the start.
  // Smaller numbers than before, of reports that arrive late, are ignored.
  // kInvalidArgument if the process does not exist.
  absl::Status Report(int64_t index, int64_t samples);
  // Reports the final number of a process, which has finished.
  absl::Status Finish(int64_t index, int64_t samples);

  // The sum over all processes.
  int64_t total() const;
  // Completes when all processes have finished, with their total.
  async::Future<int64_t> all_finished() const { return finish_.future(); }

 private:
  struct Process {
    int64_t samples = 0;
    bool finished = false;
  };

  absl::Status Record(int64_t index, int64_t samples, bool finished);
  int64_t Sum() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable async::Mutex mutex_;
  std::vector<Process> processes_ ABSL_GUARDED_BY(mutex_);
  async::Promise<int64_t> finish_;
};

}  // namespace hawser::launch

#endif  // HAWSER_LAUNCH_JOB_SAMPLE_COUNTS_H_
