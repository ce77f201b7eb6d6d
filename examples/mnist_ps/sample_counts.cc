#include "examples/mnist_ps/sample_counts.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"

namespace hawser::examples::mnist_ps {

SampleCounts::SampleCounts(int num_trainers)
    : trainers_(static_cast<size_t>(num_trainers)) {}

absl::Status SampleCounts::Report(int64_t trainer, int64_t samples) {
  return Record(trainer, samples, /*finished=*/false);
}

absl::Status SampleCounts::Finish(int64_t trainer, int64_t samples) {
  return Record(trainer, samples, /*finished=*/true);
}

int64_t SampleCounts::total() const {
  const async::MutexLock lock(&mutex_);
  return Sum();
}

int64_t SampleCounts::Sum() const {
  int64_t sum = 0;
  for (const Trainer& trainer : trainers_) sum += trainer.samples;
  return sum;
}

absl::Status SampleCounts::Record(int64_t trainer, int64_t samples,
                                  bool finished) {
  int64_t sum = 0;
  {
    const async::MutexLock lock(&mutex_);
    if (trainer < 0 || trainer >= static_cast<int64_t>(trainers_.size())) {
      return absl::InvalidArgumentError(
          absl::StrCat("trainer ", trainer, " does not exist"));
    }
    Trainer& entry = trainers_[static_cast<size_t>(trainer)];
    entry.samples = std::max(entry.samples, samples);
    if (!finished || entry.finished) return absl::OkStatus();
    entry.finished = true;
    for (const Trainer& other : trainers_) {
      if (!other.finished) return absl::OkStatus();
    }
    sum = Sum();
  }
  // Without the lock, since this runs callbacks.
  finish_.Set(sum);
  return absl::OkStatus();
}

}  // namespace hawser::examples::mnist_ps
