// Metrics of clocked tables.

#ifndef HAWSER_PS_CLOCK_CLOCK_METRICS_H_
#define HAWSER_PS_CLOCK_CLOCK_METRICS_H_

#include <map>
#include <string>
#include <vector>

#include "ps/clock/clock_gate.h"
#include "telemetry/metrics.h"

namespace hawser::ps {

// The metrics of tables with these clocks, by name. Names: docs/metrics.md.
std::vector<telemetry::MetricFamily> ClockMetrics(
    const std::map<std::string, ClockNumbers>& tables);

}  // namespace hawser::ps

#endif  // HAWSER_PS_CLOCK_CLOCK_METRICS_H_
