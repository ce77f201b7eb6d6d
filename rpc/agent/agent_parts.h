// The parts of an Agent, and their life.

#ifndef HAWSER_RPC_AGENT_AGENT_PARTS_H_
#define HAWSER_RPC_AGENT_AGENT_PARTS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/future.h"
#include "async/mutex.h"
#include "rpc/agent/agent_options.h"
#include "rpc/agent/inbound/inbound_calls.h"
#include "rpc/agent/leave/graceful_leave.h"
#include "rpc/agent/members/peer_membership.h"
#include "rpc/agent/outbound/control_sender.h"
#include "rpc/agent/outbound/outbound_calls.h"
#include "rpc/agent/outbound/request_sender.h"
#include "rpc/agent/service_host.h"
#include "rpc/agent/state/agent_state.h"
#include "rpc/agent/worker_threads.h"

namespace hawser::rpc {

class Agent;

// Composes the parts: starts them, shuts them down, and shows them to services
// as their ServiceHost.
class AgentParts final : public ServiceHost {
 public:
  // `options` are valid.
  AgentParts(Agent* agent, AgentOptions options);
  ~AgentParts() override;

  absl::Status Start();
  async::Future<void> Leave();
  absl::Status Shutdown(bool graceful);

  const std::string& job() const { return options_.job; }
  AgentState& state() { return *state_; }
  PeerMembership& members() { return members_; }
  OutboundCalls& outbound() { return outbound_; }
  std::map<std::string, std::string> DebugInfo() const;

  // --- ServiceHost.

  absl::StatusOr<const RegisteredFunction*> FindFunction(
      const MethodCall& call, std::string_view name,
      std::string_view signature) override;
  async::Future<ErasedValue> Invoke(const RegisteredFunction& function,
                                    Decoder& arguments) override;
  const WorkerInfo& info() const override { return state_->self(); }
  std::vector<WorkerInfo> workers() const override {
    return members_.workers();
  }
  absl::StatusOr<WorkerInfo> FindWorker(const Destination& worker) override;
  bool IsLost(const WorkerInfo& worker) const override {
    return members_.IsLost(worker);
  }
  async::Clock& clock() const override { return state_->clock(); }
  async::Executor& executor() const override { return state_->executor(); }
  absl::Duration default_timeout() const override {
    return state_->default_timeout();
  }
  store::Store* store() const override { return options_.store; }
  Agent* agent() const override { return state_->agent(); }
  const std::vector<Service*>& services() const override { return services_; }
  absl::Status RegisterRawMethod(const MethodName& method,
                                 RawMethodHandler handler,
                                 MethodOptions options) override;
  async::Future<RawMessage> CallRawMethod(
      const Destination& to, const MethodName& method, RawMessage request,
      const MethodCallOptions& options) override;

 private:
  absl::Status StartServices();
  void NotifyServices(const WorkerInfo& worker, const absl::Status& status);
  bool shutdown_begun() const;
  void AbandonLeave();
  void Stop();

  AgentOptions options_;
  std::vector<Service*> services_;
  // Number of services that were started, and must be stopped.
  size_t num_started_services_ = 0;

  WorkerThreads threads_;
  const std::shared_ptr<AgentState> state_;
  RequestSender sender_;
  ControlSender control_;
  PeerMembership members_;
  OutboundCalls outbound_;
  InboundCalls inbound_;

  mutable async::Mutex mutex_;
  async::CondVar changed_;
  // Set by Leave.
  std::shared_ptr<GracefulLeave> graceful_leave_ ABSL_GUARDED_BY(mutex_);
  bool shutdown_begun_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<absl::Status> shutdown_result_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_AGENT_AGENT_PARTS_H_
