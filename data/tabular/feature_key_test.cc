#include "data/tabular/feature_key.h"

#include <cstdint>
#include <set>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace hawser::data {
namespace {

// Tables on disk depend on these values.
TEST(FeatureKeyTest, ValuesThatNeverChange) {
  EXPECT_EQ(FeatureKey("C1", "68fd1e64"), 14893809242917353494u);
  EXPECT_EQ(FeatureKey("C1", ""), 37953501029317833u);
  EXPECT_EQ(FeatureKey("", ""), 5705415379283624141u);
}

TEST(FeatureKeyTest, FieldAndValueBothCount) {
  EXPECT_NE(FeatureKey("C1", "a"), FeatureKey("C2", "a"));
  EXPECT_NE(FeatureKey("C1", "a"), FeatureKey("C1", "b"));
  EXPECT_NE(FeatureKey("C", "1a"), FeatureKey("C1", "a"));
}

TEST(FeatureKeyTest, ManyValuesHaveDifferentKeys) {
  std::set<uint64_t> keys;
  for (int field = 0; field < 10; ++field) {
    for (int value = 0; value < 10'000; ++value) {
      keys.insert(FeatureKey(absl::StrCat("C", field), absl::StrCat(value)));
    }
  }
  EXPECT_EQ(keys.size(), 100'000u);
}

}  // namespace
}  // namespace hawser::data
