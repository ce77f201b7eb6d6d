// Endpoint of calls of registered functions.

#ifndef HAWSER_RPC_AGENT_INBOUND_FUNCTION_ENDPOINT_H_
#define HAWSER_RPC_AGENT_INBOUND_FUNCTION_ENDPOINT_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "async/run_time.h"
#include "rpc/agent/inbound/caller_permission.h"
#include "rpc/agent/inbound/endpoint.h"
#include "rpc/agent/inbound/function_runner.h"
#include "rpc/agent/inbound/inbound_call.h"
#include "rpc/agent/inbound/reply_sender.h"
#include "rpc/agent/state/agent_state.h"
#include "rpc/functions/method_definition.h"
#include "rpc/functions/run_on.h"
#include "rpc/peers/call_quota.h"
#include "tensor/tensor.h"

namespace hawser::rpc {

class FunctionRegistry;
class RegisteredFunction;

// "hawser.v1.WorkerService.Call".
class FunctionEndpoint final : public Endpoint {
 public:
  struct Options {
    std::shared_ptr<AgentState> state;
    const MethodDefinition* definition;
    // These must outlive the endpoint.
    const FunctionRegistry* registry;
    CallQuota* quota;
    const CallerPermission* permission;
    const ReplySender* replies;
    FunctionRunner* runner;
  };

  explicit FunctionEndpoint(Options options) : options_(std::move(options)) {}

  const MethodDefinition& definition() const override {
    return *options_.definition;
  }
  CallQuota* quota() const override { return options_.quota; }
  bool hot() const override { return true; }

  absl::Status Check(InboundCall& call) const override;
  const RunOn& run_on(const InboundCall& call) const override;
  bool MayRunInline(const InboundCall& call) const override;
  async::RunTime& run_time(const InboundCall& call) const override;
  absl::Status CheckBeforeRun(InboundCall& call) const override;
  void Run(const std::shared_ptr<InboundCall>& call,
           std::vector<tensor::Tensor> tensors) const override;

 private:
  const Options options_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_AGENT_INBOUND_FUNCTION_ENDPOINT_H_
