#include "data/synthetic_digits.h"

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::data {
namespace {

using async::IsOk;

constexpr int64_t kPixels = int64_t{28} * 28;

uint64_t Fnv1a(const std::vector<uint8_t>& bytes) {
  uint64_t hash = 14695981039346656037u;
  for (const uint8_t byte : bytes) hash = (hash ^ byte) * 1099511628211u;
  return hash;
}

TEST(SyntheticDigitsTest, SetIsValidAndEven) {
  const LabeledImages set = DrawDigits(1000, 3);
  ASSERT_THAT(Validate(set, 10), IsOk());
  std::array<int, 10> counts{};
  for (const int64_t label : set.labels.ToVector<int64_t>()) {
    ++counts[static_cast<size_t>(label)];
  }
  EXPECT_THAT(counts, ::testing::Each(100));
}

TEST(SyntheticDigitsTest, SeedDecidesEveryByte) {
  const auto bytes = [](uint64_t seed) {
    return DrawDigits(50, seed).images.ToVector<uint8_t>();
  };
  EXPECT_EQ(bytes(1), bytes(1));
  EXPECT_NE(bytes(1), bytes(2));
  // A fixed hash detects changes of the drawing.
  EXPECT_EQ(Fnv1a(bytes(1)), 17824981364791142007u);
}

// Nearest class mean, a classifier that needs real differences between the
// classes and a spread small enough to see them.
TEST(SyntheticDigitsTest, ClassesAreSeparable) {
  const LabeledImages train = DrawDigits(2000, 1);
  const LabeledImages test = DrawDigits(500, 2);
  std::array<std::array<double, kPixels>, 10> means{};
  const uint8_t* pixels = train.images.data<uint8_t>();
  for (int64_t i = 0; i < train.count(); ++i) {
    auto& mean = means[static_cast<size_t>(train.labels.data<int64_t>()[i])];
    for (int64_t p = 0; p < kPixels; ++p) {
      mean[static_cast<size_t>(p)] += pixels[i * kPixels + p] / 200.0;
    }
  }
  int right = 0;
  for (int64_t i = 0; i < test.count(); ++i) {
    const uint8_t* image = test.images.data<uint8_t>() + i * kPixels;
    double nearest = std::numeric_limits<double>::infinity();
    int64_t guess = -1;
    for (int64_t c = 0; c < 10; ++c) {
      double distance = 0;
      for (int64_t p = 0; p < kPixels; ++p) {
        const double d =
            image[p] - means[static_cast<size_t>(c)][static_cast<size_t>(p)];
        distance += d * d;
      }
      if (distance < nearest) {
        nearest = distance;
        guess = c;
      }
    }
    right += guess == test.labels.data<int64_t>()[i];
  }
  EXPECT_GT(right, 400);  // Chance gives 50.
  EXPECT_LT(right, 500);  // The task is not trivial: a linear rule does not
                          // suffice.
}

}  // namespace
}  // namespace hawser::data
