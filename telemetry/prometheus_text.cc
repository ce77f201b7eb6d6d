#include "telemetry/prometheus_text.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "prometheus/client_metric.h"
#include "prometheus/metric_family.h"
#include "prometheus/metric_type.h"
#include "prometheus/text_serializer.h"

namespace hawser::telemetry {
namespace {

prometheus::MetricType TypeOf(MetricType type) {
  switch (type) {
    case MetricType::kCounter:
      return prometheus::MetricType::Counter;
    case MetricType::kGauge:
      return prometheus::MetricType::Gauge;
    case MetricType::kHistogram:
      return prometheus::MetricType::Histogram;
  }
  return prometheus::MetricType::Untyped;
}

prometheus::ClientMetric::Histogram HistogramOf(
    const DurationHistogram::Counts& counts) {
  prometheus::ClientMetric::Histogram histogram;
  uint64_t count = 0;
  for (size_t i = 0; i < counts.buckets.size(); ++i) {
    count += static_cast<uint64_t>(counts.buckets[i]);
    const double bound = i < DurationHistogram::kBounds.size()
                             ? DurationHistogram::kBounds[i]
                             : std::numeric_limits<double>::infinity();
    histogram.bucket.push_back({count, bound});
  }
  histogram.sample_count = count;
  histogram.sample_sum = counts.sum_seconds;
  return histogram;
}

prometheus::ClientMetric Convert(const Metric& metric, MetricType type) {
  prometheus::ClientMetric converted;
  for (const auto& [name, value] : metric.labels) {
    converted.label.push_back({name, value});
  }
  switch (type) {
    case MetricType::kCounter:
      converted.counter.value = metric.value;
      break;
    case MetricType::kGauge:
      converted.gauge.value = metric.value;
      break;
    case MetricType::kHistogram:
      converted.histogram = HistogramOf(metric.histogram);
      break;
  }
  return converted;
}

}  // namespace

std::string PrometheusText(const std::vector<MetricFamily>& families) {
  std::vector<prometheus::MetricFamily> converted;
  for (const MetricFamily& family : families) {
    if (family.metrics.empty()) continue;
    prometheus::MetricFamily& to = converted.emplace_back();
    to.name = family.name;
    to.help = family.help;
    to.type = TypeOf(family.type);
    for (const Metric& metric : family.metrics) {
      to.metric.push_back(Convert(metric, family.type));
    }
  }
  return prometheus::TextSerializer().Serialize(converted);
}

}  // namespace hawser::telemetry
