#include "data/batch_sampler.h"

#include <algorithm>
#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "async/check.h"

namespace hawser::data {

absl::StatusOr<BatchSampler> BatchSampler::Create(int64_t batch_samples,
                                                  bool drop_last) {
  if (batch_samples < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "batch_samples is ", batch_samples, "; it must be 1 or more"));
  }
  return BatchSampler(batch_samples, drop_last);
}

int64_t BatchSampler::NumBatches(int64_t num_samples) const {
  const bool partial = !drop_last_ && num_samples % batch_samples_ != 0;
  return num_samples / batch_samples_ + (partial ? 1 : 0);
}

std::span<const int64_t> BatchSampler::Batch(std::span<const int64_t> indices,
                                             int64_t batch) const {
  const auto num_samples = static_cast<int64_t>(indices.size());
  HAWSER_CHECK(batch >= 0 && batch < NumBatches(num_samples))
      << "batch " << batch << " of " << NumBatches(num_samples);
  const int64_t begin = batch * batch_samples_;
  return indices.subspan(
      static_cast<size_t>(begin),
      static_cast<size_t>(std::min(batch_samples_, num_samples - begin)));
}

}  // namespace hawser::data
