// Metrics in the text format of Prometheus.

#ifndef HAWSER_TELEMETRY_PROMETHEUS_TEXT_H_
#define HAWSER_TELEMETRY_PROMETHEUS_TEXT_H_

#include <string>
#include <vector>

#include "telemetry/metrics.h"

namespace hawser::telemetry {

inline constexpr char kPrometheusContentType[] =
    "text/plain; version=0.0.4; charset=utf-8";

// Version 0.0.4 of the format. Families without metrics are left out.
std::string PrometheusText(const std::vector<MetricFamily>& families);

}  // namespace hawser::telemetry

#endif  // HAWSER_TELEMETRY_PROMETHEUS_TEXT_H_
