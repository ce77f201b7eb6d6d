// Metrics of calls, as other servers of gRPC name them.

#ifndef HAWSER_LAUNCH_CALL_METRICS_H_
#define HAWSER_LAUNCH_CALL_METRICS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rpc/agent/call_observer.h"
#include "telemetry/duration_histogram.h"
#include "telemetry/metrics.h"

namespace hawser::launch {

// Counts calls and their results by method, and measures their durations:
// grpc_server_started_total, grpc_server_handled_total,
// grpc_server_handling_seconds, and the same with "client". All registered
// functions are one method, WorkerService.Call.
//
// Thread-safe. Each call adds to four numbers.
class CallMetrics final : public rpc::CallObserver,
                          public telemetry::MetricSource {
 public:
  // Further methods are counted as "other".
  static constexpr size_t kMaxMethods = 256;

  std::unique_ptr<Call> Begin(const rpc::CallStart& start) override;
  std::vector<telemetry::MetricFamily> Metrics() const override;

 private:
  struct Method {
    std::atomic<int64_t> started{0};
    // By code of the result.
    std::array<std::atomic<int64_t>, 17> handled = {};
    telemetry::DurationHistogram durations;
  };
  class ObservedCall;
  using Side = rpc::CallStart::Side;
  using Methods = std::map<std::string, std::unique_ptr<Method>, std::less<>>;

  Method& Find(Side side, std::string_view name);
  void AppendMetrics(const char* side, const Methods& methods,
                     std::vector<telemetry::MetricFamily>& families) const;

  mutable std::shared_mutex mutex_;
  // By full name. Methods stay. Guarded by mutex_.
  Methods client_;
  Methods server_;
};

}  // namespace hawser::launch

#endif  // HAWSER_LAUNCH_CALL_METRICS_H_
