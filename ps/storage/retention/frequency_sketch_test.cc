#include "ps/storage/retention/frequency_sketch.h"

#include <cstdint>
#include <random>

#include "absl/status/status.h"
#include "async/testing/status_matchers.h"
#include "gtest/gtest.h"

namespace hawser::ps {
namespace {

using ::hawser::async::IsOk;

constexpr size_t kWindow = 1 << 16;

class FrequencySketchTest : public testing::Test {
 protected:
  FrequencySketchTest() { EXPECT_THAT(sketch_.Allocate(), IsOk()); }

  FrequencySketch sketch_{kWindow};
  std::mt19937_64 random_{1};
};

TEST_F(FrequencySketchTest, CountsOfFewKeysAreExact) {
  uint64_t hashes[10];
  for (uint64_t& hash : hashes) hash = random_();
  for (uint32_t count = 1; count <= 20; ++count) {
    for (uint64_t hash : hashes) {
      EXPECT_EQ(sketch_.Add(hash), std::min(count, FrequencySketch::kMaxCount));
    }
  }
}

// The error that the header states.
TEST_F(FrequencySketchTest, AFullWindowRaisesFewCounts) {
  for (size_t i = 0; i < kWindow - 1000; ++i) sketch_.Add(random_());
  int raised = 0;
  for (int i = 0; i < 1000; ++i) {
    const uint32_t count = sketch_.Add(random_());
    EXPECT_LE(count, 3u);
    raised += count > 1 ? 1 : 0;
  }
  EXPECT_LT(raised, 50);
}

TEST_F(FrequencySketchTest, CountsAreHalvedInEachWindow) {
  const uint64_t hash = random_();
  for (int i = 0; i < 12; ++i) sketch_.Add(hash);
  for (uint32_t expected : {7u, 4u, 3u}) {
    for (size_t i = 0; i < kWindow; ++i) sketch_.Add(random_());
    const uint32_t count = sketch_.Add(hash);
    EXPECT_GE(count, expected);
    EXPECT_LE(count, expected + 1);
  }
}

TEST_F(FrequencySketchTest, MemoryIsFourBytesForEachAddition) {
  EXPECT_EQ(sketch_.bytes(), 4 * kWindow);
}

}  // namespace
}  // namespace hawser::ps
