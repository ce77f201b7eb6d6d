#include "cli/health_probe.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

#include "absl/time/clock.h"
#include "grpcpp/client_context.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/support/async_unary_call.h"
#include "grpcpp/support/status.h"
#include "net/auth/peer_verification.h"
#include "net/grpc/client_settings.h"
#include "rpc/grpc/status.h"
#include "src/proto/grpc/health/v1/health.grpc.pb.h"

namespace hawser::cli {
namespace {

using ::grpc::health::v1::Health;
using ::grpc::health::v1::HealthCheckRequest;
using ::grpc::health::v1::HealthCheckResponse;

constexpr size_t kMaxConcurrent = 256;

// One call, which ends when `queue` returns its tag.
class Probe {
 public:
  Probe(const ProbedServer& server, const HealthProbeOptions& options,
        grpc::CompletionQueue& queue)
      : verification_(options.credentials, server.worker),
        stub_(Health::NewStub(verification_.CreateChannel(
            server.address, net::ClientSettings()))) {
    context_.set_deadline(absl::ToChronoTime(absl::Now() + options.timeout));
    HealthCheckRequest request;
    request.set_service(options.service);
    call_ = stub_->AsyncCheck(&context_, request, &queue);
    call_->Finish(&response_, &status_, /*tag=*/this);
  }

  // Of the call, which has ended.
  ServerHealth Result() const {
    absl::Status error = verification_.Explain(rpc::FromGrpcStatus(status_));
    if (error.ok()) {
      return {HealthCheckResponse::ServingStatus_Name(response_.status()),
              std::move(error)};
    }
    const bool replied =
        !absl::IsUnavailable(error) && !absl::IsDeadlineExceeded(error);
    return {replied ? "UNKNOWN" : "NO_REPLY", std::move(error)};
  }

 private:
  const net::PeerVerification verification_;
  const std::unique_ptr<Health::Stub> stub_;
  grpc::ClientContext context_;
  HealthCheckResponse response_;
  grpc::Status status_;
  std::unique_ptr<grpc::ClientAsyncResponseReader<HealthCheckResponse>> call_;
};

void ProbeConcurrently(std::span<const ProbedServer> servers,
                       const HealthProbeOptions& options,
                       std::vector<ServerHealth>& healths) {
  grpc::CompletionQueue queue;
  std::vector<std::unique_ptr<Probe>> probes;
  for (const ProbedServer& server : servers) {
    probes.push_back(std::make_unique<Probe>(server, options, queue));
  }
  queue.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  // Each probe ends once; then the queue is empty.
  while (queue.Next(&tag, &ok)) {
  }
  for (const auto& probe : probes) healths.push_back(probe->Result());
}

}  // namespace

std::vector<ServerHealth> ProbeHealth(const std::vector<ProbedServer>& servers,
                                      const HealthProbeOptions& options) {
  std::vector<ServerHealth> healths;
  std::span<const ProbedServer> rest = servers;
  while (!rest.empty()) {
    const size_t count = std::min(rest.size(), kMaxConcurrent);
    ProbeConcurrently(rest.first(count), options, healths);
    rest = rest.subspan(count);
  }
  return healths;
}

}  // namespace hawser::cli
