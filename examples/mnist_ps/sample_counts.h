// Numbers of samples that the trainers of a job have processed.

#ifndef HAWSER_EXAMPLES_MNIST_PS_SAMPLE_COUNTS_H_
#define HAWSER_EXAMPLES_MNIST_PS_SAMPLE_COUNTS_H_

#include <cstdint>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "async/future.h"
#include "async/mutex.h"

namespace hawser::examples::mnist_ps {

// Trainer 0's counts of the samples of each trainer. Thread-safe.
class SampleCounts {
 public:
  explicit SampleCounts(int num_trainers);

  // Records that `trainer` has processed `samples` since the start. Smaller
  // numbers than before, of reports that arrive late, are ignored.
  // kInvalidArgument if the trainer does not exist.
  absl::Status Report(int64_t trainer, int64_t samples);
  // Reports the final number of a trainer, which has finished.
  absl::Status Finish(int64_t trainer, int64_t samples);

  // The sum over all trainers.
  int64_t total() const;
  // Completes when all trainers have finished, with their total.
  async::Future<int64_t> all_finished() const { return finish_.future(); }

 private:
  struct Trainer {
    int64_t samples = 0;
    bool finished = false;
  };

  absl::Status Record(int64_t trainer, int64_t samples, bool finished);
  int64_t Sum() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable async::Mutex mutex_;
  std::vector<Trainer> trainers_ ABSL_GUARDED_BY(mutex_);
  async::Promise<int64_t> finish_;
};

}  // namespace hawser::examples::mnist_ps

#endif  // HAWSER_EXAMPLES_MNIST_PS_SAMPLE_COUNTS_H_
