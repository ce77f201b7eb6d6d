// The samples of a data set in their order.

#ifndef HAWSER_DATA_SEQUENTIAL_SAMPLER_H_
#define HAWSER_DATA_SEQUENTIAL_SAMPLER_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

namespace hawser::data {

// Immutable; thread-safe.
class SequentialSampler {
 public:
  // kInvalidArgument: a negative dataset_count.
  static absl::StatusOr<SequentialSampler> Create(int64_t dataset_count);

  int64_t count() const { return dataset_count_; }

  // 0 to count() - 1, in every epoch.
  std::vector<int64_t> Indices(int64_t epoch) const;

 private:
  explicit SequentialSampler(int64_t dataset_count)
      : dataset_count_(dataset_count) {}

  int64_t dataset_count_;
};

}  // namespace hawser::data

#endif  // HAWSER_DATA_SEQUENTIAL_SAMPLER_H_
