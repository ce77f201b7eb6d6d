#include "data/weighted_random_sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::data {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

TEST(WeightedRandomSamplerTest, WithReplacementSharesFollowTheWeights) {
  const std::vector<double> weights{1, 0, 4, 2, 0, 3, 0};
  const auto sampler = WeightedRandomSampler::Create(
      {.weights = weights, .num_samples = 50000, .seed = 2});
  ASSERT_THAT(sampler, IsOk());
  const std::vector<int64_t> indices = sampler->Indices(0);
  for (size_t i = 0; i < weights.size(); ++i) {
    const auto drawn =
        std::count(indices.begin(), indices.end(), static_cast<int64_t>(i));
    const double share = weights[i] / 10;
    EXPECT_NEAR(static_cast<double>(drawn), share * 50000,
                5 * std::sqrt(share * (1 - share) * 50000))
        << "sample " << i;
  }
}

TEST(WeightedRandomSamplerTest, WithoutReplacementSamplesAreDistinct) {
  std::vector<double> weights;
  for (int i = 0; i < 37; ++i) weights.push_back(i % 3 == 0 ? 0 : 0.1 * i);
  const auto sampler = WeightedRandomSampler::Create(
      {.weights = weights, .num_samples = 24, .replacement = false});
  ASSERT_THAT(sampler, IsOk());
  for (int64_t epoch = 0; epoch < 200; ++epoch) {
    const std::vector<int64_t> indices = sampler->Indices(epoch);
    // All that have a weight.
    EXPECT_EQ(std::set<int64_t>(indices.begin(), indices.end()).size(), 24u);
    for (const int64_t index : indices) {
      EXPECT_GT(weights[static_cast<size_t>(index)], 0);
    }
  }
}

// The chance of the order (i, j) is w_i / W * w_j / (W - w_i).
TEST(WeightedRandomSamplerTest, WithoutReplacementLaterDrawsAreWeightedToo) {
  const std::vector<double> weights{1, 2, 5};
  const auto sampler = WeightedRandomSampler::Create(
      {.weights = weights, .num_samples = 2, .replacement = false});
  ASSERT_THAT(sampler, IsOk());
  constexpr int kEpochs = 20000;
  double drawn[3][3] = {};
  for (int64_t epoch = 0; epoch < kEpochs; ++epoch) {
    const std::vector<int64_t> indices = sampler->Indices(epoch);
    drawn[indices[0]][indices[1]] += 1;
  }
  for (size_t i = 0; i < 3; ++i) {
    for (size_t j = 0; j < 3; ++j) {
      const double chance =
          i == j ? 0 : weights[i] / 8 * weights[j] / (8 - weights[i]);
      EXPECT_NEAR(drawn[i][j] / kEpochs, chance,
                  5 * std::sqrt(chance * (1 - chance) / kEpochs));
    }
  }
}

TEST(WeightedRandomSamplerTest, WeightsOfVeryDifferentSizesAreAllDrawn) {
  const auto sampler =
      WeightedRandomSampler::Create({.weights = {1e300, 0, 1e-300, 1, 5e-324},
                                     .num_samples = 4,
                                     .replacement = false});
  ASSERT_THAT(sampler, IsOk());
  for (int64_t epoch = 0; epoch < 50; ++epoch) {
    EXPECT_THAT(sampler->Indices(epoch), UnorderedElementsAre(0, 2, 3, 4));
    EXPECT_EQ(sampler->Indices(epoch)[0], 0);
  }
}

TEST(WeightedRandomSamplerTest, ASingleSampleIsDrawnAlways) {
  EXPECT_THAT(WeightedRandomSampler::Create({.weights = {2}, .num_samples = 3})
                  ->Indices(0),
              ElementsAre(0, 0, 0));
}

TEST(WeightedRandomSamplerTest, TheDrawsDependOnSeedAndEpoch) {
  const auto indices = [](uint64_t seed, int64_t epoch) {
    return WeightedRandomSampler::Create(
               {.weights = {1, 2, 3}, .num_samples = 40, .seed = seed})
        ->Indices(epoch);
  };
  EXPECT_EQ(indices(1, 3), indices(1, 3));
  EXPECT_NE(indices(1, 3), indices(1, 4));
  EXPECT_NE(indices(1, 3), indices(2, 3));
}

TEST(WeightedRandomSamplerTest, BadOptionsAreRefused) {
  const auto create = [](std::vector<double> weights, int64_t num_samples,
                         bool replacement) {
    return WeightedRandomSampler::Create({.weights = std::move(weights),
                                          .num_samples = num_samples,
                                          .replacement = replacement});
  };
  EXPECT_THAT(create({}, 1, true), StatusIs(kInvalid, HasSubstr("weights")));
  EXPECT_THAT(create({0, 0}, 1, true),
              StatusIs(kInvalid, HasSubstr("all weights are 0")));
  EXPECT_THAT(create({1, -1}, 1, true),
              StatusIs(kInvalid, HasSubstr("sample 1 is -1")));
  EXPECT_THAT(create({std::nan(""), 1}, 1, true),
              StatusIs(kInvalid, HasSubstr("sample 0 is nan")));
  EXPECT_THAT(create({1, std::numeric_limits<double>::infinity()}, 1, true),
              StatusIs(kInvalid, HasSubstr("sample 1 is inf")));
  EXPECT_THAT(create({1e308, 1e308}, 1, true),
              StatusIs(kInvalid, HasSubstr("sum of the weights")));
  EXPECT_THAT(create({1}, 0, true),
              StatusIs(kInvalid, HasSubstr("num_samples is 0")));
  EXPECT_THAT(create({1, 0, 2}, 3, false),
              StatusIs(kInvalid, HasSubstr("only 2 samples")));
}

}  // namespace
}  // namespace hawser::data
