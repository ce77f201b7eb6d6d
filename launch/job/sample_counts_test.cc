#include "launch/job/sample_counts.h"

#include "absl/status/status.h"
#include "async/future.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::launch {
namespace {

using async::IsOk;
using async::StatusIs;

TEST(SampleCountsTest, TotalIsTheSumOfTheLatestReports) {
  SampleCounts counts(2);
  EXPECT_THAT(counts.Report(0, 64), IsOk());
  EXPECT_THAT(counts.Report(1, 100), IsOk());
  EXPECT_THAT(counts.Report(1, 90), IsOk());  // Arrives late.
  EXPECT_EQ(counts.total(), 164);
}

TEST(SampleCountsTest, AllFinishedCompletesWithTheLastProcess) {
  SampleCounts counts(2);
  const async::Future<int64_t> all = counts.all_finished();
  EXPECT_THAT(counts.Finish(1, 10), IsOk());
  EXPECT_THAT(counts.Finish(1, 10), IsOk());
  EXPECT_FALSE(all.ready());
  EXPECT_THAT(counts.Finish(0, 20), IsOk());
  ASSERT_TRUE(all.ready());
  EXPECT_EQ(*all.result(), 30);
}

TEST(SampleCountsTest, UnknownProcessesAreRejected) {
  SampleCounts counts(2);
  for (const int64_t index : {-1, 2}) {
    EXPECT_THAT(counts.Report(index, 1),
                StatusIs(absl::StatusCode::kInvalidArgument));
    EXPECT_THAT(counts.Finish(index, 1),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
  EXPECT_EQ(counts.total(), 0);
}

}  // namespace
}  // namespace hawser::launch
