#include "launch/call_metrics.h"

#include <chrono>
#include <functional>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace hawser::launch {
namespace {

using ::hawser::telemetry::MetricFamily;
using ::hawser::telemetry::MetricType;

using Clock = std::chrono::steady_clock;
using Labels = std::vector<std::pair<std::string, std::string>>;

constexpr char kOther[] = "other";

// As in the metrics of other implementations of gRPC.
constexpr const char* kCodes[] = {"OK",
                                  "Canceled",
                                  "Unknown",
                                  "InvalidArgument",
                                  "DeadlineExceeded",
                                  "NotFound",
                                  "AlreadyExists",
                                  "PermissionDenied",
                                  "ResourceExhausted",
                                  "FailedPrecondition",
                                  "Aborted",
                                  "OutOfRange",
                                  "Unimplemented",
                                  "Internal",
                                  "Unavailable",
                                  "DataLoss",
                                  "Unauthenticated"};

Labels LabelsOf(const std::string& method) {
  const size_t end = method.rfind('.');
  if (end == std::string::npos) return {{"grpc_method", method}};
  return {{"grpc_service", method.substr(0, end)},
          {"grpc_method", method.substr(end + 1)}};
}

}  // namespace

class CallMetrics::ObservedCall final : public Call {
 public:
  explicit ObservedCall(Method& method) : method_(method) {}

  void End(const rpc::CallEnd& end) override {
    method_.handled[static_cast<size_t>(end.status.code())].fetch_add(
        1, std::memory_order_relaxed);
    method_.durations.Record(absl::FromChrono(Clock::now() - start_));
  }

 private:
  Method& method_;
  const Clock::time_point start_ = Clock::now();
};

std::unique_ptr<rpc::CallObserver::Call> CallMetrics::Begin(
    const rpc::CallStart& start) {
  Method& method = Find(start.side, start.method);
  method.started.fetch_add(1, std::memory_order_relaxed);
  return std::make_unique<ObservedCall>(method);
}

CallMetrics::Method& CallMetrics::Find(Side side, std::string_view name) {
  Methods& methods = side == Side::kClient ? client_ : server_;
  {
    const std::shared_lock lock(mutex_);
    const auto found = methods.find(name);
    if (found != methods.end()) return *found->second;
  }
  const std::unique_lock lock(mutex_);
  if (methods.size() >= kMaxMethods && !methods.contains(name)) name = kOther;
  std::unique_ptr<Method>& method = methods[std::string(name)];
  if (method == nullptr) method = std::make_unique<Method>();
  return *method;
}

void CallMetrics::AppendMetrics(const char* side, const Methods& methods,
                                std::vector<MetricFamily>& families) const {
  MetricFamily started{absl::StrCat("grpc_", side, "_started_total"),
                       "Calls that began.", MetricType::kCounter};
  MetricFamily handled{absl::StrCat("grpc_", side, "_handled_total"),
                       "Calls that ended, by code.", MetricType::kCounter};
  MetricFamily durations{absl::StrCat("grpc_", side, "_handling_seconds"),
                         "Durations of calls.", MetricType::kHistogram};
  for (const auto& [name, method] : methods) {
    const Labels labels = LabelsOf(name);
    started.metrics.push_back(
        {.labels = labels, .value = static_cast<double>(method->started)});
    durations.metrics.push_back(
        {.labels = labels, .histogram = method->durations.counts()});
    for (size_t code = 0; code < method->handled.size(); ++code) {
      const int64_t count = method->handled[code];
      if (count == 0) continue;
      Labels with_code = labels;
      with_code.emplace_back("grpc_code", kCodes[code]);
      handled.metrics.push_back({.labels = std::move(with_code),
                                 .value = static_cast<double>(count)});
    }
  }
  families.push_back(std::move(started));
  families.push_back(std::move(handled));
  families.push_back(std::move(durations));
}

std::vector<MetricFamily> CallMetrics::Metrics() const {
  const std::shared_lock lock(mutex_);
  std::vector<MetricFamily> families;
  AppendMetrics("server", server_, families);
  AppendMetrics("client", client_, families);
  return families;
}

}  // namespace hawser::launch
