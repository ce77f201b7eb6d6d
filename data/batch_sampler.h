// Batches of the samples of an epoch.

#ifndef HAWSER_DATA_BATCH_SAMPLER_H_
#define HAWSER_DATA_BATCH_SAMPLER_H_

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"

namespace hawser::data {

// Division of a list of samples, such as the indices of a sampler, into batches
// of `batch_samples`. The last batch is smaller if the samples do not suffice;
// with `drop_last` it is left out instead, as in PyTorch's BatchSampler.
//
// Immutable; thread-safe.
class BatchSampler {
 public:
  // kInvalidArgument: batch_samples below 1.
  static absl::StatusOr<BatchSampler> Create(int64_t batch_samples,
                                             bool drop_last);

  // The number of batches of `num_samples`: their quotient by the size of a
  // batch, rounded up, or down with `drop_last`.
  int64_t NumBatches(int64_t num_samples) const;

  // Batch `batch`, in [0, NumBatches(indices.size())), of `indices`, a part of
  // the same memory.
  std::span<const int64_t> Batch(std::span<const int64_t> indices,
                                 int64_t batch) const;

 private:
  BatchSampler(int64_t batch_samples, bool drop_last)
      : batch_samples_(batch_samples), drop_last_(drop_last) {}

  int64_t batch_samples_;
  bool drop_last_;
};

}  // namespace hawser::data

#endif  // HAWSER_DATA_BATCH_SAMPLER_H_
