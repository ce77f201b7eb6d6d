#include "telemetry/duration_histogram.h"

#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::telemetry {
namespace {

using ::testing::Each;

TEST(DurationHistogramTest, CountsADurationBelowItsBound) {
  DurationHistogram histogram;
  histogram.Record(absl::ZeroDuration());
  histogram.Record(absl::Microseconds(100));
  histogram.Record(absl::Microseconds(101));
  histogram.Record(absl::Seconds(1));
  histogram.Record(absl::Seconds(1000));
  const DurationHistogram::Counts counts = histogram.counts();
  EXPECT_EQ(counts.buckets[0], 2);
  EXPECT_EQ(counts.buckets[1], 1);
  EXPECT_EQ(counts.buckets[12], 1);
  EXPECT_EQ(counts.buckets[19], 1);
  EXPECT_DOUBLE_EQ(counts.sum_seconds, 1001.000201);
}

TEST(DurationHistogramTest, LosesNoneOfSeveralThreads) {
  DurationHistogram histogram;
  EXPECT_THAT(histogram.counts().buckets, Each(0));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 10'000; ++k) histogram.Record(absl::Milliseconds(1));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(histogram.counts().buckets[3], 40'000);
  EXPECT_DOUBLE_EQ(histogram.counts().sum_seconds, 40);
}

}  // namespace
}  // namespace hawser::telemetry
