#include "launch/job/sample_counts.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"

namespace hawser::launch {

SampleCounts::SampleCounts(int num_processes)
    : processes_(static_cast<size_t>(num_processes)) {}

absl::Status SampleCounts::Report(int64_t index, int64_t samples) {
  return Record(index, samples, /*finished=*/false);
}

absl::Status SampleCounts::Finish(int64_t index, int64_t samples) {
  return Record(index, samples, /*finished=*/true);
}

int64_t SampleCounts::total() const {
  const async::MutexLock lock(&mutex_);
  return Sum();
}

int64_t SampleCounts::Sum() const {
  int64_t sum = 0;
  for (const Process& process : processes_) sum += process.samples;
  return sum;
}

absl::Status SampleCounts::Record(int64_t index, int64_t samples,
                                  bool finished) {
  int64_t sum = 0;
  {
    const async::MutexLock lock(&mutex_);
    if (index < 0 || index >= static_cast<int64_t>(processes_.size())) {
      return absl::InvalidArgumentError(
          absl::StrCat("process ", index, " does not exist"));
    }
    Process& entry = processes_[static_cast<size_t>(index)];
    entry.samples = std::max(entry.samples, samples);
    if (!finished || entry.finished) return absl::OkStatus();
    entry.finished = true;
    for (const Process& other : processes_) {
      if (!other.finished) return absl::OkStatus();
    }
    sum = Sum();
  }
  // Without the lock, since this runs callbacks.
  finish_.Set(sum);
  return absl::OkStatus();
}

}  // namespace hawser::launch
