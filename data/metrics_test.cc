#include "data/metrics.h"

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "absl/status/status.h"
#include "async/random_source.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::data {
namespace {

using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::DoubleEq;
using ::testing::DoubleNear;
using ::testing::HasSubstr;

using Floats = std::vector<float>;

// The definition of the AUC, over all pairs.
double AucOfPairs(const Floats& scores, const Floats& labels) {
  double won = 0;
  double pairs = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    for (size_t j = 0; j < scores.size(); ++j) {
      if (labels[i] != 1 || labels[j] != 0) continue;
      pairs += 1;
      won += scores[i] > scores[j] ? 1 : scores[i] == scores[j] ? 0.5 : 0;
    }
  }
  return won / pairs;
}

TEST(AucTest, OrdersOfFourSamples) {
  EXPECT_THAT(Auc(Floats{1, 2, 3, 4}, Floats{0, 0, 1, 1}),
              IsOkAndHolds(DoubleEq(1)));
  EXPECT_THAT(Auc(Floats{4, 3, 2, 1}, Floats{0, 0, 1, 1}),
              IsOkAndHolds(DoubleEq(0)));
  EXPECT_THAT(Auc(Floats{1, 2, 3, 4}, Floats{0, 1, 0, 1}),
              IsOkAndHolds(DoubleEq(0.75)));
}

TEST(AucTest, EqualScoresCountHalf) {
  EXPECT_THAT(Auc(Floats{7, 7, 7}, Floats{0, 1, 1}),
              IsOkAndHolds(DoubleEq(0.5)));
  EXPECT_THAT(Auc(Floats{1, 2, 2, 3}, Floats{0, 0, 1, 1}),
              IsOkAndHolds(DoubleEq(3.5 / 4)));
}

TEST(AucTest, EqualsTheDefinitionOnRandomScoresWithTies) {
  async::RandomSource random(1);
  for (int run = 0; run < 20; ++run) {
    Floats scores;
    Floats labels;
    for (int i = 0; i < 100; ++i) {
      scores.push_back(static_cast<float>(random.Below(30)));
      labels.push_back(static_cast<float>(random.Below(2)));
    }
    EXPECT_THAT(Auc(scores, labels),
                IsOkAndHolds(DoubleNear(AucOfPairs(scores, labels), 1e-12)));
  }
}

TEST(AucTest, BadSamplesAreRefused) {
  const auto refused = [](const char* part) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(part));
  };
  EXPECT_THAT(Auc(Floats{1}, Floats{0, 1}), refused("1 predictions for 2"));
  EXPECT_THAT(Auc(Floats{}, Floats{}), refused("needs both labels"));
  EXPECT_THAT(Auc(Floats{1, 2}, Floats{1, 1}), refused("needs both labels"));
  EXPECT_THAT(Auc(Floats{1, 2}, Floats{0, 2}), refused("label 1 is 2"));
  EXPECT_THAT(Auc(Floats{std::nanf(""), 2}, Floats{0, 1}),
              refused("score 0 is nan"));
  EXPECT_THAT(
      Auc(Floats{1, std::numeric_limits<float>::infinity()}, Floats{0, 1}),
      refused("score 1 is inf"));
}

TEST(RmseTest, OfKnownDifferences) {
  EXPECT_THAT(Rmse(Floats{1, 2}, Floats{4, -2}),
              IsOkAndHolds(DoubleEq(std::sqrt(12.5))));
  EXPECT_THAT(Rmse(Floats{3}, Floats{3}), IsOkAndHolds(DoubleEq(0)));
}

TEST(RmseTest, BadSizesAreRefused) {
  EXPECT_THAT(Rmse(Floats{}, Floats{}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Rmse(Floats{1, 2}, Floats{1}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace hawser::data
