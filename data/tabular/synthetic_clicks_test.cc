#include "data/tabular/synthetic_clicks.h"

#include <cmath>
#include <cstdint>
#include <set>

#include "async/testing/status_matchers.h"
#include "data/metrics.h"
#include "data/tabular/testing/text_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::data {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::testing::AllOf;
using ::testing::Gt;
using ::testing::Lt;

TEST(SyntheticClicksTest, ClicksHaveTheProbabilityOfTheTrueModel) {
  SyntheticClicks clicks({.num_samples = 50'000});
  const auto samples = ReadSamples(clicks);
  ASSERT_THAT(samples, IsOk());
  ASSERT_EQ(samples->size(), 50'000);
  // In ten classes of probability.
  double expected[10] = {};
  double variance[10] = {};
  double seen[10] = {};
  for (int64_t i = 0; i < samples->size(); ++i) {
    const double p = 1 / (1 + std::exp(-samples->ideal[i]));
    const int bin = static_cast<int>(p * 10);
    expected[bin] += p;
    variance[bin] += p * (1 - p);
    seen[bin] += samples->labels[i];
  }
  for (int bin = 0; bin < 10; ++bin) {
    EXPECT_NEAR(seen[bin], expected[bin], 5 * std::sqrt(variance[bin])) << bin;
    EXPECT_GT(expected[bin], 100) << bin;
  }
  EXPECT_THAT(Auc(samples->ideal, samples->labels),
              IsOkAndHolds(AllOf(Gt(0.8), Lt(0.95))));
}

TEST(SyntheticClicksTest, ColumnsAreAsDescribed) {
  SyntheticClicks clicks({.num_samples = 1000,
                          .num_dense = 2,
                          .num_fields = 3,
                          .num_categories = 5});
  const auto samples = ReadSamples(clicks);
  ASSERT_THAT(samples, IsOk());
  EXPECT_EQ(clicks.width(), (SampleWidth{.dense = 2, .keys = 3}));
  EXPECT_EQ(samples->dense.size(), 2000u);
  EXPECT_EQ(samples->values, std::vector<float>(3000, 1));
  const std::set<int64_t> keys(samples->keys.begin(), samples->keys.end());
  EXPECT_EQ(keys.size(), 15u);
}

TEST(SyntheticClicksTest, SkippedSamplesDoNotChangeOthers) {
  SyntheticClicks all({.num_samples = 2});
  SyntheticClicks some({.num_samples = 2});
  const auto samples = ReadSamples(all);
  ASSERT_THAT(some.Next(nullptr), IsOkAndHolds(true));
  const auto rest = ReadSamples(some);
  ASSERT_EQ(rest->size(), 1);
  EXPECT_EQ(rest->ideal[0], samples->ideal[1]);
  EXPECT_EQ(rest->keys[0], samples->keys[6]);
}

}  // namespace
}  // namespace hawser::data
