// Click data drawn from a known model.

#ifndef HAWSER_DATA_TABULAR_SYNTHETIC_CLICKS_H_
#define HAWSER_DATA_TABULAR_SYNTHETIC_CLICKS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "async/random_source.h"
#include "data/tabular/samples.h"

namespace hawser::data {

struct SyntheticClicksOptions {
  int64_t num_samples = 200'000;
  int64_t num_dense = 4;
  int64_t num_fields = 6;
  // Categories of each field; half of the samples have one of the first 35 %.
  int64_t num_categories = 100;
  uint64_t seed = 1;
};

// A factorization machine with random parameters draws the label of each
// sample: the logit is the sum of a weight for each category, the products of
// the factors of each pair of categories, and the weighted dense features,
// which are normal numbers. `ideal` has this logit: its AUC is the best that a
// model can reach. Categories have the keys FeatureKey("C1", "17").
//
// The samples are a function of the options alone.
class SyntheticClicks final : public SampleReader {
 public:
  explicit SyntheticClicks(const SyntheticClicksOptions& options);

  const SampleWidth& width() const override { return width_; }
  absl::StatusOr<bool> Next(Samples* samples) override;

 private:
  static constexpr int kFactors = 4;

  struct Category {
    int64_t key;
    float weight;
    float factors[kFactors];
  };

  const SyntheticClicksOptions options_;
  const SampleWidth width_;
  async::RandomSource random_;
  std::vector<Category> categories_;  // [num_fields, num_categories]
  std::vector<float> dense_weights_;
  int64_t num_read_ = 0;
};

}  // namespace hawser::data

#endif  // HAWSER_DATA_TABULAR_SYNTHETIC_CLICKS_H_
