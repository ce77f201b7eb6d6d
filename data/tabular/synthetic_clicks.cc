#include "data/tabular/synthetic_clicks.h"

#include <cmath>
#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "data/tabular/feature_key.h"
#include "data/tabular/normal_number.h"

namespace hawser::data {
namespace {

// With these scales about a third of the samples are clicks, and the best AUC
// is near 0.85.
constexpr float kBias = -1;
constexpr float kWeightScale = 0.5;
constexpr float kFactorScale = 0.4;
constexpr float kDenseScale = 0.4;

}  // namespace

SyntheticClicks::SyntheticClicks(const SyntheticClicksOptions& options)
    : options_(options),
      width_({.dense = options.num_dense, .keys = options.num_fields}),
      random_(options.seed) {
  for (int64_t field = 0; field < options.num_fields; ++field) {
    const std::string name = absl::StrCat("C", field + 1);
    for (int64_t value = 0; value < options.num_categories; ++value) {
      Category category;
      category.key =
          static_cast<int64_t>(FeatureKey(name, absl::StrCat(value)));
      category.weight = kWeightScale * NormalNumber(random_);
      for (float& factor : category.factors)
        factor = kFactorScale * NormalNumber(random_);
      categories_.push_back(category);
    }
  }
  for (int64_t i = 0; i < options.num_dense; ++i) {
    dense_weights_.push_back(kDenseScale * NormalNumber(random_));
  }
}

absl::StatusOr<bool> SyntheticClicks::Next(Samples* samples) {
  if (num_read_ == options_.num_samples) return false;
  ++num_read_;
  Samples skipped;
  Samples& result = samples != nullptr ? *samples : skipped;
  float logit = kBias;
  for (const float weight : dense_weights_) {
    const float value = NormalNumber(random_);
    result.dense.push_back(value);
    logit += weight * value;
  }
  // Of the factors of the fields so far.
  float sums[kFactors] = {};
  for (int64_t field = 0; field < options_.num_fields; ++field) {
    const double u = random_.Uniform();
    const auto value = static_cast<int64_t>(
        u * std::sqrt(u) * static_cast<double>(options_.num_categories));
    const Category& category = categories_[static_cast<size_t>(
        field * options_.num_categories + value)];
    result.keys.push_back(category.key);
    result.values.push_back(1);
    logit += category.weight;
    for (int i = 0; i < kFactors; ++i) {
      const float factor = category.factors[i];
      logit += factor * sums[i];
      sums[i] += factor;
    }
  }
  const double probability = 1 / (1 + std::exp(-static_cast<double>(logit)));
  result.labels.push_back(random_.Uniform() < probability ? 1.0f : 0.0f);
  result.ideal.push_back(logit);
  return true;
}

}  // namespace hawser::data
