#include "rref/rref_service.h"

#include "rpc/agent/agent.h"
#include "rpc/agent/service_host.h"

namespace hawser::rref {

absl::Status RRefService::Start(rpc::ServiceHost& host) {
  protocol_ = std::make_shared<Protocol>(host, options_);
  return protocol_->Start();
}

void RRefService::OnWorkerLost(const rpc::WorkerInfo& worker,
                               const absl::Status& status) {
  protocol_->OnWorkerLost(worker, status);
}

async::Future<void> RRefService::Drain(async::MonotonicTime deadline) {
  return protocol_->Drain(deadline);
}

void RRefService::Interrupt() {
  if (protocol_ != nullptr) protocol_->Interrupt();
}

void RRefService::Stop() {
  if (protocol_ != nullptr) protocol_->Stop();
}

std::map<std::string, int64_t> RRefService::DebugNumbers() const {
  const Protocol::Counts counts = protocol_->counts();
  const auto number = [](size_t count) { return static_cast<int64_t>(count); };
  return {{"owners", number(counts.owner.owners)},
          {"awaited", number(counts.owner.awaited)},
          {"forks", number(counts.owner.forks)},
          {"remote_forks", number(counts.owner.remote_forks)},
          {"users", number(counts.user.users)},
          {"unconfirmed_users", number(counts.user.unconfirmed_users)},
          {"control_senders", number(counts.control_senders)},
          {"control_receivers", number(counts.control_receivers)}};
}

absl::StatusOr<std::shared_ptr<Protocol>> ProtocolOf(rpc::ServiceHost& host) {
  const auto* service = host.service<RRefService>();
  if (service == nullptr || service->protocol() == nullptr) {
    return absl::FailedPreconditionError(
        "this agent does not have an RRefService: add one to "
        "AgentOptions::services");
  }
  return service->protocol();
}

absl::StatusOr<std::shared_ptr<Protocol>> ProtocolOf(rpc::Agent& agent) {
  return ProtocolOf(agent.host());
}

}  // namespace hawser::rref
