// Batches of samples, for a model.

#ifndef HAWSER_DATA_TABULAR_SAMPLE_BATCHES_H_
#define HAWSER_DATA_TABULAR_SAMPLE_BATCHES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/random_source.h"
#include "data/tabular/samples.h"
#include "tensor/tensor.h"

namespace hawser::data {

// n samples. Each tensor is contiguous and has its own memory.
struct SampleBatch {
  int64_t size() const { return labels.dim(0); }

  Tensor labels;             // f32[n, 1]
  Tensor dense;              // f32[n, width.dense]
  Tensor keys;               // i64[n, width.keys]
  Tensor values;             // f32[n, width.keys]
  std::vector<float> ideal;  // As in Samples.
};

struct SampleBatchesOptions {
  // At least 1. The last batch may be smaller.
  int64_t batch_samples = 256;
  // Number of samples that are read at once, in one random order: the samples
  // in memory. At least 1; 1 keeps the order of the reader.
  int64_t shuffle_samples = 1;
  uint64_t seed = 0;
  // Each `test_every`-th sample of the reader is for testing. 0: none. `test`
  // chooses these samples instead of the others.
  int64_t test_every = 0;
  bool test = false;
  // Trainer `rank` of `num_replicas` gets every num_replicas-th of the samples.
  // All get the same number: up to num_replicas - 1 samples at the end are left
  // out.
  int64_t num_replicas = 1;
  int64_t rank = 0;
};

// Returns how many samples of `total` these options choose.
int64_t NumChosen(int64_t total, const SampleBatchesOptions& options);

// One pass over the samples of a reader. Not thread-safe.
class SampleBatches {
 public:
  // kInvalidArgument: an option is out of range.
  static absl::StatusOr<SampleBatches> Create(
      std::unique_ptr<SampleReader> reader,
      const SampleBatchesOptions& options);

  // Returns the next batch, or nothing at the end. Errors are those of the
  // reader.
  absl::StatusOr<std::optional<SampleBatch>> Next();

 private:
  SampleBatches(std::unique_ptr<SampleReader> reader,
                const SampleBatchesOptions& options)
      : reader_(std::move(reader)), options_(options), random_(options.seed) {}

  // Reads the samples that are shuffled together.
  absl::Status Fill();
  // Reads `num_replicas` chosen samples, of which the own one is appended.
  // False at the end.
  absl::StatusOr<bool> ReadOne();
  // Reads on to the next chosen sample; null skips it as well.
  absl::StatusOr<bool> ReadChosen(Samples* samples);
  // The samples at `order_[begin, end)`.
  SampleBatch Gather(size_t begin, size_t end) const;

  std::unique_ptr<SampleReader> reader_;
  SampleBatchesOptions options_;
  async::RandomSource random_;
  int64_t num_read_ = 0;
  bool at_end_ = false;
  Samples samples_;
  // The order of `samples_`, and the number of those already returned.
  std::vector<size_t> order_;
  size_t num_returned_ = 0;
};

struct SampleSummary {
  int64_t count = 0;
  // 0 without samples.
  double mean_label = 0;
};

// Reads and checks all samples.
absl::StatusOr<SampleSummary> Summarize(SampleReader& reader);

}  // namespace hawser::data

#endif  // HAWSER_DATA_TABULAR_SAMPLE_BATCHES_H_
