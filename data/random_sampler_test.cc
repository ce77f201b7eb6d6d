#include "data/random_sampler.h"

#include <algorithm>
#include <set>

#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::data {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

TEST(RandomSamplerTest, EachFullPassIsAPermutation) {
  for (const int64_t n : {1, 2, 5, 16}) {
    for (int64_t num_samples = 1; num_samples <= 3 * n + 1; ++num_samples) {
      const auto sampler = RandomSampler::Create(
          {.dataset_count = n, .num_samples = num_samples, .seed = 3});
      ASSERT_THAT(sampler, IsOk());
      const std::vector<int64_t> indices = sampler->Indices(1);
      ASSERT_EQ(static_cast<int64_t>(indices.size()), num_samples);
      for (int64_t begin = 0; begin < num_samples; begin += n) {
        const int64_t end = std::min(begin + n, num_samples);
        // Distinct, also in the last, incomplete pass.
        EXPECT_EQ(
            static_cast<int64_t>(std::set<int64_t>(indices.begin() + begin,
                                                   indices.begin() + end)
                                     .size()),
            end - begin);
      }
    }
  }
}

TEST(RandomSamplerTest, PassesOfAnEpochDiffer) {
  const auto indices =
      RandomSampler::Create({.dataset_count = 30, .num_samples = 60})
          ->Indices(0);
  EXPECT_FALSE(
      std::equal(indices.begin(), indices.begin() + 30, indices.begin() + 30));
}

TEST(RandomSamplerTest, WithoutANumberAnEpochIsOnePass) {
  EXPECT_EQ(RandomSampler::Create({.dataset_count = 8})->count(), 8);
}

TEST(RandomSamplerTest, WithReplacementDrawsAreUniformAndRepeat) {
  const auto sampler = RandomSampler::Create({.dataset_count = 10,
                                              .num_samples = 20000,
                                              .replacement = true,
                                              .seed = 1});
  ASSERT_THAT(sampler, IsOk());
  const std::vector<int64_t> indices = sampler->Indices(0);
  for (int64_t sample = 0; sample < 10; ++sample) {
    // The standard deviation is 42.
    EXPECT_NEAR(std::count(indices.begin(), indices.end(), sample), 2000, 210);
  }
  // Unlike passes, the first 10 draws have repetitions.
  EXPECT_LT(std::set<int64_t>(indices.begin(), indices.begin() + 10).size(),
            10u);
}

TEST(RandomSamplerTest, TheOrderDependsOnSeedAndEpoch) {
  for (const bool replacement : {false, true}) {
    const auto indices = [&](uint64_t seed, int64_t epoch) {
      return RandomSampler::Create({.dataset_count = 50,
                                    .replacement = replacement,
                                    .seed = seed})
          ->Indices(epoch);
    };
    EXPECT_EQ(indices(1, 3), indices(1, 3));
    EXPECT_NE(indices(1, 3), indices(1, 4));
    EXPECT_NE(indices(1, 3), indices(2, 3));
  }
}

TEST(RandomSamplerTest, BadOptionsAreRefused) {
  EXPECT_THAT(RandomSampler::Create({.dataset_count = 0}),
              StatusIs(kInvalid, HasSubstr("dataset_count is 0")));
  EXPECT_THAT(RandomSampler::Create({.dataset_count = 3, .num_samples = 0}),
              StatusIs(kInvalid, HasSubstr("num_samples is 0")));
}

}  // namespace
}  // namespace hawser::data
