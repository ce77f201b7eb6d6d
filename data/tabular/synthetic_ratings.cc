#include "data/tabular/synthetic_ratings.h"

#include <cstddef>

#include "data/tabular/normal_number.h"

namespace hawser::data {
namespace {

constexpr float kMean = 3.5;
constexpr float kBiasScale = 0.4;
constexpr float kFactorScale = 0.6;

}  // namespace

SyntheticRatings::SyntheticRatings(const SyntheticRatingsOptions& options)
    : options_(options),
      random_(options.seed),
      users_(DrawRows(options.num_users)),
      items_(DrawRows(options.num_items)) {}

std::vector<SyntheticRatings::Row> SyntheticRatings::DrawRows(int64_t count) {
  std::vector<Row> rows(static_cast<size_t>(count));
  for (Row& row : rows) {
    row.bias = kBiasScale * NormalNumber(random_);
    for (float& factor : row.factors) {
      factor = kFactorScale * NormalNumber(random_);
    }
  }
  return rows;
}

absl::StatusOr<bool> SyntheticRatings::Next(Samples* samples) {
  if (num_read_ == options_.num_samples) return false;
  ++num_read_;
  const size_t user = random_.Below(users_.size());
  const size_t item = random_.Below(items_.size());
  const float noise =
      static_cast<float>(options_.noise) * NormalNumber(random_);
  if (samples == nullptr) return true;
  float rating = kMean + users_[user].bias + items_[item].bias;
  for (int i = 0; i < kFactors; ++i) {
    rating += users_[user].factors[i] * items_[item].factors[i];
  }
  samples->keys.push_back(static_cast<int64_t>(user));
  samples->keys.push_back(static_cast<int64_t>(item));
  samples->values.insert(samples->values.end(), {1, 1});
  samples->labels.push_back(rating + noise);
  samples->ideal.push_back(rating);
  return true;
}

}  // namespace hawser::data
