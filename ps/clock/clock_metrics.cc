#include "ps/clock/clock_metrics.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ps/clock/clock_gate.h"
#include "telemetry/metrics.h"

namespace hawser::ps {

using ::hawser::telemetry::MetricFamily;
using ::hawser::telemetry::MetricType;

std::vector<MetricFamily> ClockMetrics(
    const std::map<std::string, ClockNumbers>& tables) {
  MetricFamily clocks{"ps_clock", "Clocks that all workers have completed.",
                      MetricType::kGauge};
  MetricFamily workers{"ps_clock_workers", "Workers that train on a table.",
                       MetricType::kGauge};
  MetricFamily parked{"ps_parked_requests",
                      "Requests that wait for the clocks of other workers.",
                      MetricType::kGauge};
  MetricFamily staleness{
      "ps_staleness_steps_total",
      "Pulls, by the clocks by which they were ahead of the slowest worker.",
      MetricType::kCounter};
  for (const auto& [table, numbers] : tables) {
    const auto add = [&table = table](MetricFamily& family, int64_t value) {
      family.metrics.push_back(
          {.labels = {{"table", table}}, .value = static_cast<double>(value)});
    };
    add(clocks, numbers.completed);
    add(workers, numbers.num_workers);
    add(parked, numbers.num_parked);
    for (size_t steps = 0; steps < numbers.pulls_by_staleness.size(); ++steps) {
      const int64_t pulls = numbers.pulls_by_staleness[steps];
      if (pulls == 0) continue;
      add(staleness, pulls);
      staleness.metrics.back().labels.emplace_back("steps",
                                                   absl::StrCat(steps));
    }
  }
  return {clocks, workers, parked, staleness};
}

}  // namespace hawser::ps
