#include "telemetry/prometheus_text.h"

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "telemetry/duration_histogram.h"
#include "telemetry/metrics.h"

namespace hawser::telemetry {
namespace {

using ::testing::HasSubstr;

TEST(PrometheusTextTest, WritesCountersAndGauges) {
  EXPECT_EQ(PrometheusText(
                {{"pushes_total",
                  "Pushes.",
                  MetricType::kCounter,
                  {{.labels = {{"table", "a\"b\\c\nd"}}, .value = 3},
                   {.labels = {{"table", "e"}}, .value = 1e15}}},
                 {"none", "Has no metrics.", MetricType::kGauge},
                 {"rows", "Rows.", MetricType::kGauge, {{.value = -0.5}}}}),
            "# HELP pushes_total Pushes.\n"
            "# TYPE pushes_total counter\n"
            "pushes_total{table=\"a\\\"b\\\\c\\nd\"} 3\n"
            "pushes_total{table=\"e\"} 1000000000000000\n"
            "# HELP rows Rows.\n"
            "# TYPE rows gauge\n"
            "rows -0.5\n");
}

TEST(PrometheusTextTest, BucketsOfAHistogramAreCumulative) {
  DurationHistogram histogram;
  histogram.Record(absl::Milliseconds(1));
  histogram.Record(absl::Milliseconds(2));
  histogram.Record(absl::Seconds(1000));
  const std::string text = PrometheusText(
      {{"sync_seconds",
        "Syncs.",
        MetricType::kHistogram,
        {{.labels = {{"table", "t"}}, .histogram = histogram.counts()}}}});
  for (const char* line :
       {"# TYPE sync_seconds histogram\n",
        "sync_seconds_count{table=\"t\"} 3\n",
        "sync_seconds_sum{table=\"t\"} 1000.003",
        "sync_seconds_bucket{table=\"t\",le=\"0.001\"} 1\n",
        "sync_seconds_bucket{table=\"t\",le=\"100\"} 2\n",
        "sync_seconds_bucket{table=\"t\",le=\"+Inf\"} 3\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

}  // namespace
}  // namespace hawser::telemetry
