#include "rpc/agent/agent.h"

#include <utility>

#include "async/status_macros.h"
#include "rpc/agent/agent_parts.h"
#include "rpc/agent/outbound/outgoing_call.h"
#include "rpc/errors/error_detail.h"

namespace hawser::rpc {

absl::StatusOr<std::unique_ptr<Agent>> Agent::Start(AgentOptions options) {
  RETURN_IF_ERROR(Validate(options));
  PrintErrorDetailsInWords();
  std::unique_ptr<Agent> agent(new Agent(std::move(options)));
  RETURN_IF_ERROR(agent->parts_->Start());
  return agent;
}

Agent::Agent(AgentOptions options)
    : parts_(std::make_unique<AgentParts>(this, std::move(options))) {}

Agent::~Agent() { (void)Shutdown(/*graceful=*/false); }

const WorkerInfo& Agent::info() const { return parts_->info(); }
const std::string& Agent::job() const { return parts_->job(); }
std::vector<WorkerInfo> Agent::workers() const { return parts_->workers(); }

absl::StatusOr<WorkerInfo> Agent::FindWorker(const Destination& worker) {
  return parts_->FindWorker(worker);
}

bool Agent::IsLost(const WorkerInfo& worker) const {
  return parts_->IsLost(worker);
}

MemberWatch Agent::WatchMembers(MemberCallback callback) {
  return parts_->members().WatchMembers(std::move(callback));
}
void Agent::UnwatchMembers(MemberWatch watch) {
  parts_->members().UnwatchMembers(watch);
}

ServiceHost& Agent::host() const { return *parts_; }
const std::vector<Service*>& Agent::services() const {
  return parts_->services();
}

TransferTotals Agent::transfer_totals() const {
  return parts_->state().transfers().totals();
}
int64_t Agent::num_client_calls() const {
  return parts_->state().outbound_calls().value();
}
int64_t Agent::num_server_calls() const {
  return parts_->state().inbound_calls().value();
}
std::map<std::string, std::string> Agent::DebugInfo() const {
  return parts_->DebugInfo();
}

async::Future<void> Agent::Leave() { return parts_->Leave(); }

absl::Status Agent::Shutdown(bool graceful) {
  return parts_->Shutdown(graceful);
}

Agent::CallHandle Agent::NewCall() { return std::make_shared<OutgoingCall>(); }
void Agent::CancelCall(const CallHandle& call) { call->Cancel(); }
std::shared_ptr<async::WaitPoller> Agent::PollerOf(const CallHandle& call) {
  return call;
}

void Agent::StartCall(const CallHandle& call, const Destination& to,
                      const CallOptions& options, std::string_view function,
                      std::string_view signature,
                      absl::FunctionRef<absl::Status(Encoder&)> encode,
                      ReplyCallback done) {
  parts_->outbound().CallFunction(call, to, options, function, signature,
                                  encode, std::move(done));
}

}  // namespace hawser::rpc
