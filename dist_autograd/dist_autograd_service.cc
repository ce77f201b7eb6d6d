#include "dist_autograd/dist_autograd_service.h"

#include "rpc/agent/agent.h"
#include "rpc/agent/service_host.h"

namespace hawser::dist_autograd {

absl::Status DistAutogradService::Start(rpc::ServiceHost& host) {
  engine_ = std::make_shared<Engine>(host, options_);
  return engine_->Start();
}

void DistAutogradService::OnWorkerLost(const rpc::WorkerInfo& worker,
                                       const absl::Status& status) {
  engine_->OnWorkerLost(worker, status);
}

void DistAutogradService::Stop() {
  if (engine_ != nullptr) engine_->Stop();
}

std::map<std::string, int64_t> DistAutogradService::DebugNumbers() const {
  return {{"backward_passes", static_cast<int64_t>(engine_->num_passes())},
          {"contexts", static_cast<int64_t>(engine_->num_contexts())}};
}

absl::StatusOr<std::optional<rpc::AutogradMetadata>>
DistAutogradService::OnSend(const rpc::WorkerInfo& peer,
                            std::span<const tensor::Tensor> tensors) {
  return engine_->OnSend(peer, tensors);
}

absl::StatusOr<async::TaskContext> DistAutogradService::OnReceiveRequest(
    const rpc::WorkerInfo& peer, const rpc::AutogradMetadata& metadata,
    std::span<tensor::Tensor> tensors) {
  return engine_->OnReceiveRequest(peer, metadata, tensors);
}

absl::Status DistAutogradService::OnReceiveReply(
    const rpc::WorkerInfo& peer, const rpc::AutogradMetadata& metadata,
    std::span<tensor::Tensor> tensors) {
  return engine_->OnReceiveReply(peer, metadata, tensors);
}

absl::StatusOr<std::shared_ptr<Engine>> EngineOf(rpc::ServiceHost& host) {
  const auto* service = host.service<DistAutogradService>();
  if (service == nullptr || service->engine() == nullptr) {
    return absl::FailedPreconditionError(
        "this agent does not have a DistAutogradService: add one to "
        "AgentOptions::services");
  }
  return service->engine();
}

absl::StatusOr<std::shared_ptr<Engine>> EngineOf(rpc::Agent& agent) {
  return EngineOf(agent.host());
}

}  // namespace hawser::dist_autograd
