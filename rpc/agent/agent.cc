#include "rpc/agent/agent.h"

#include <utility>

#include "async/status_macros.h"
#include "rpc/agent/agent_impl.h"
#include "rpc/agent/outgoing_call.h"

namespace hawser::rpc {

absl::StatusOr<std::unique_ptr<Agent>> Agent::Start(AgentOptions options) {
  std::unique_ptr<Agent> agent(new Agent(std::move(options)));
  RETURN_IF_ERROR(agent->impl_->Start());
  return agent;
}

Agent::Agent(AgentOptions options)
    : impl_(std::make_unique<Impl>(this, std::move(options))) {}

Agent::~Agent() { (void)Shutdown(/*graceful=*/false); }

const WorkerInfo& Agent::info() const { return impl_->info(); }
const std::string& Agent::job() const { return impl_->options().job; }
std::vector<WorkerInfo> Agent::workers() const { return impl_->workers(); }

absl::StatusOr<WorkerInfo> Agent::FindWorker(const Destination& worker) {
  return impl_->FindWorker(worker);
}

bool Agent::IsLost(const WorkerInfo& worker) const {
  return impl_->IsLost(worker);
}

MemberWatch Agent::WatchMembers(MemberCallback callback) {
  return impl_->WatchMembers(std::move(callback));
}
void Agent::UnwatchMembers(MemberWatch watch) { impl_->UnwatchMembers(watch); }

ServiceHost& Agent::host() const { return *impl_; }
const std::vector<Service*>& Agent::services() const {
  return impl_->services();
}

TransferTotals Agent::transfer_totals() const { return impl_->totals(); }
int64_t Agent::num_client_calls() const { return impl_->num_client_calls(); }
int64_t Agent::num_server_calls() const { return impl_->num_server_calls(); }
std::map<std::string, std::string> Agent::DebugInfo() const {
  return impl_->DebugInfo();
}

async::Future<void> Agent::Leave() { return impl_->Leave(); }

absl::Status Agent::Shutdown(bool graceful) {
  return impl_->Shutdown(graceful);
}

Agent::CallHandle Agent::NewCall() { return std::make_shared<OutgoingCall>(); }
void Agent::CancelCall(const CallHandle& call) { call->Cancel(); }
void Agent::AwaitReply(const CallHandle& call) { call->AwaitReply(); }

void Agent::StartCall(const CallHandle& call, const Destination& to,
                      const CallOptions& options, std::string_view function,
                      std::string_view signature,
                      absl::FunctionRef<absl::Status(Encoder&)> encode,
                      ReplyCallback done) {
  impl_->StartCall(call, to, options, function, signature, encode,
                   std::move(done));
}

}  // namespace hawser::rpc
