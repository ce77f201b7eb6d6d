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

const WorkerInfo& Agent::info() const { return impl_->self(); }
const std::string& Agent::job() const { return impl_->options().job; }
std::vector<WorkerInfo> Agent::workers() const { return impl_->workers(); }

absl::StatusOr<WorkerInfo> Agent::FindWorker(const Destination& worker) {
  ASSIGN_OR_RETURN(const std::shared_ptr<Peer> peer,
                   impl_->FindPeer(worker, async::kNever));
  return peer->info();
}

bool Agent::IsLost(const WorkerInfo& worker) const {
  return impl_->IsLost(worker);
}

MemberWatch Agent::WatchMembers(MemberCallback callback) {
  return impl_->WatchMembers(std::move(callback));
}
void Agent::UnwatchMembers(MemberWatch watch) { impl_->UnwatchMembers(watch); }

absl::Status Agent::RegisterRawMethod(std::string_view method,
                                      RawMethodHandler handler,
                                      MethodOptions options) {
  return impl_->RegisterMethod(method, std::move(handler), options);
}

async::Future<RawMessage> Agent::CallRawMethod(
    const Destination& to, std::string_view method, RawMessage request,
    const MethodCallOptions& options) {
  return impl_->CallMethod(to, method, std::move(request), options);
}

absl::StatusOr<const RegisteredFunction*> Agent::FindFunction(
    const MethodCall& call, std::string_view name,
    std::string_view signature) const {
  return impl_->FindFunction(call, name, signature);
}

async::Future<ErasedValue> Agent::Invoke(const RegisteredFunction& function,
                                         Decoder& arguments) {
  return impl_->Invoke(function, arguments);
}

const FunctionRegistry& Agent::registry() const {
  return *impl_->options().registry;
}
async::Clock& Agent::clock() const { return impl_->clock(); }
async::Executor& Agent::executor() const { return impl_->executor(); }
absl::Duration Agent::default_timeout() const {
  return impl_->options().default_timeout;
}
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
