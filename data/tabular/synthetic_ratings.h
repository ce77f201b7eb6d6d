// Ratings drawn from a known model.

#ifndef HAWSER_DATA_TABULAR_SYNTHETIC_RATINGS_H_
#define HAWSER_DATA_TABULAR_SYNTHETIC_RATINGS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "async/random_source.h"
#include "data/tabular/samples.h"

namespace hawser::data {

struct SyntheticRatingsOptions {
  int64_t num_samples = 200'000;
  int64_t num_users = 1000;
  int64_t num_items = 500;
  // Standard deviation of the noise of each rating.
  double noise = 0.5;
  uint64_t seed = 1;
};

// A biased matrix factorization with random parameters draws ratings near 3.5
// and adds normal noise, which no model can predict: the best RMSE is `noise`.
// `ideal` has the ratings without noise. Users have the keys 0, 1, ..., items
// as well.
//
// The samples are a function of the options alone.
class SyntheticRatings final : public SampleReader {
 public:
  explicit SyntheticRatings(const SyntheticRatingsOptions& options);

  const SampleWidth& width() const override { return width_; }
  absl::StatusOr<bool> Next(Samples* samples) override;

 private:
  static constexpr int kFactors = 4;

  struct Row {
    float bias;
    float factors[kFactors];
  };

  std::vector<Row> DrawRows(int64_t count);

  const SyntheticRatingsOptions options_;
  const SampleWidth width_ = {.keys = 2};
  async::RandomSource random_;
  const std::vector<Row> users_;
  const std::vector<Row> items_;
  int64_t num_read_ = 0;
};

}  // namespace hawser::data

#endif  // HAWSER_DATA_TABULAR_SYNTHETIC_RATINGS_H_
