#include "rref/rref_service.h"

#include "rpc/agent.h"

namespace hawser::rref {

absl::Status RRefService::Start(rpc::Agent& agent) {
  protocol_ = std::make_shared<Protocol>(agent, options_);
  return protocol_->Start();
}

void RRefService::OnWorkerLost(const rpc::WorkerInfo& worker,
                               const absl::Status& status) {
  protocol_->OnWorkerLost(worker, status);
}

async::Future<void> RRefService::Drain(async::MonotonicTime deadline) {
  return protocol_->Drain(deadline);
}

void RRefService::Stop() {
  if (protocol_ != nullptr) protocol_->Stop();
}

absl::StatusOr<std::shared_ptr<Protocol>> ProtocolOf(rpc::Agent& agent) {
  const auto* service = agent.service<RRefService>();
  if (service == nullptr || service->protocol() == nullptr) {
    return absl::FailedPreconditionError(
        "no RRefService is attached to this agent");
  }
  return service->protocol();
}

}  // namespace hawser::rref
