#include "launch/call_metrics.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/agent/call_observer.h"
#include "rpc/identity/worker_info.h"
#include "telemetry/prometheus_text.h"

namespace hawser::launch {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Side = rpc::CallStart::Side;

class CallMetricsTest : public testing::Test {
 protected:
  std::unique_ptr<rpc::CallObserver::Call> Begin(Side side,
                                                 const std::string& method) {
    return metrics_.Begin({side, method, "", peer_, nullptr});
  }
  void Call(Side side, const std::string& method, const absl::Status& status) {
    Begin(side, method)->End({status, 0, 0});
  }
  std::string Text() const {
    return telemetry::PrometheusText(metrics_.Metrics());
  }

  const rpc::WorkerInfo peer_;
  CallMetrics metrics_;
};

TEST_F(CallMetricsTest, CountsCallsByMethodSideAndCode) {
  Call(Side::kServer, "hawser.v1.TableService.Push", absl::OkStatus());
  Call(Side::kServer, "hawser.v1.TableService.Push", absl::OkStatus());
  Call(Side::kServer, "hawser.v1.TableService.Push", absl::NotFoundError(""));
  const auto running = Begin(Side::kServer, "hawser.v1.TableService.Push");
  Call(Side::kClient, "hawser.v1.TableService.Push",
       absl::UnauthenticatedError(""));
  const std::string text = Text();
  const std::string labels =
      "{grpc_service=\"hawser.v1.TableService\",grpc_method=\"Push\"";
  for (const std::string& line :
       {absl::StrCat("grpc_server_started_total", labels, "} 4\n"),
        absl::StrCat("grpc_server_handled_total", labels,
                     ",grpc_code=\"OK\"} 2\n"),
        absl::StrCat("grpc_server_handled_total", labels,
                     ",grpc_code=\"NotFound\"} 1\n"),
        absl::StrCat("grpc_server_handling_seconds_count", labels, "} 3\n"),
        absl::StrCat("grpc_client_started_total", labels, "} 1\n"),
        absl::StrCat("grpc_client_handled_total", labels,
                     ",grpc_code=\"Unauthenticated\"} 1\n")}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST_F(CallMetricsTest, FurtherMethodsAreCountedTogether) {
  for (size_t i = 0; i < CallMetrics::kMaxMethods + 10; ++i) {
    Call(Side::kServer, absl::StrCat("Service.", i), absl::OkStatus());
  }
  Call(Side::kServer, "Service.0", absl::OkStatus());
  const std::string text = Text();
  EXPECT_THAT(text, HasSubstr("started_total{grpc_method=\"other\"} 10\n"));
  EXPECT_THAT(text, HasSubstr("grpc_method=\"0\"} 2\n"));
  EXPECT_THAT(text, Not(HasSubstr("grpc_method=\"256\"")));
}

}  // namespace
}  // namespace hawser::launch
