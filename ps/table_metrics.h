#ifndef HAWSER_PS_TABLE_METRICS_H_
#define HAWSER_PS_TABLE_METRICS_H_

#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "ps/server/refused_requests.h"
#include "ps/storage/logged_table.h"
#include "telemetry/metrics.h"

namespace hawser::ps {

// The metrics of a server with these tables, at the time `now`. Names:
// docs/metrics.md.
std::vector<telemetry::MetricFamily> TableMetrics(
    const std::vector<std::shared_ptr<LoggedTable>>& tables,
    const RefusedRequests& refused, absl::Time now);

}  // namespace hawser::ps

#endif  // HAWSER_PS_TABLE_METRICS_H_
