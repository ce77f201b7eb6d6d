// Metrics as monitoring systems read them.

#ifndef HAWSER_TELEMETRY_METRICS_H_
#define HAWSER_TELEMETRY_METRICS_H_

#include <string>
#include <utility>
#include <vector>

#include "telemetry/duration_histogram.h"

namespace hawser::telemetry {

enum class MetricType {
  // Only increases, from 0 at the start of the process. Named "..._total".
  kCounter,
  kGauge,
  // Of durations. Named "..._seconds".
  kHistogram,
};

struct Metric {
  // Names and values, such as {"table", "users"}.
  std::vector<std::pair<std::string, std::string>> labels = {};
  // Unless it is a histogram.
  double value = 0;
  DurationHistogram::Counts histogram = {};
};

// Metrics of one name, with different labels. Units are seconds and bytes.
struct MetricFamily {
  // Letters, digits and '_'; unique among all sources.
  std::string name;
  std::string help;
  MetricType type;
  std::vector<Metric> metrics = {};
};

// Something with metrics, such as a service of a worker.
class MetricSource {
 public:
  virtual ~MetricSource() = default;

  // Thread-safe, and does not block for long.
  virtual std::vector<MetricFamily> Metrics() const = 0;
};

}  // namespace hawser::telemetry

#endif  // HAWSER_TELEMETRY_METRICS_H_
