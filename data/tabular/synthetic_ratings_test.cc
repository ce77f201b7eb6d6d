#include "data/tabular/synthetic_ratings.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "async/testing/status_matchers.h"
#include "data/metrics.h"
#include "data/tabular/testing/text_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::data {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::testing::DoubleNear;
using ::testing::Gt;

TEST(SyntheticRatingsTest, TheBestRmseIsTheNoise) {
  SyntheticRatings ratings({.num_samples = 50'000, .noise = 0.25});
  const auto samples = ReadSamples(ratings);
  ASSERT_THAT(samples, IsOk());
  EXPECT_THAT(Rmse(samples->ideal, samples->labels),
              IsOkAndHolds(DoubleNear(0.25, 0.005)));
  // The mean of all ratings predicts them far worse.
  const std::vector<float> mean(samples->labels.size(), 3.5f);
  EXPECT_THAT(Rmse(mean, samples->labels), IsOkAndHolds(Gt(0.7)));
}

TEST(SyntheticRatingsTest, KeysAreUsersAndItems) {
  SyntheticRatings ratings(
      {.num_samples = 1000, .num_users = 7, .num_items = 3});
  const auto samples = ReadSamples(ratings);
  ASSERT_THAT(samples, IsOk());
  int64_t last_user = 0;
  int64_t last_item = 0;
  for (size_t i = 0; i < samples->keys.size(); i += 2) {
    last_user = std::max(last_user, samples->keys[i]);
    last_item = std::max(last_item, samples->keys[i + 1]);
  }
  EXPECT_EQ(last_user, 6);
  EXPECT_EQ(last_item, 2);
}

TEST(SyntheticRatingsTest, SkippedSamplesDoNotChangeOthers) {
  SyntheticRatings all({.num_samples = 2});
  SyntheticRatings some({.num_samples = 2});
  const auto samples = ReadSamples(all);
  ASSERT_THAT(some.Next(nullptr), IsOkAndHolds(true));
  const auto rest = ReadSamples(some);
  ASSERT_EQ(rest->size(), 1);
  EXPECT_EQ(rest->labels[0], samples->labels[1]);
}

}  // namespace
}  // namespace hawser::data
