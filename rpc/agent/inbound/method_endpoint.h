// Endpoint of calls of a service's method.

#ifndef HAWSER_RPC_AGENT_INBOUND_METHOD_ENDPOINT_H_
#define HAWSER_RPC_AGENT_INBOUND_METHOD_ENDPOINT_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "async/run_time.h"
#include "rpc/agent/inbound/caller_permission.h"
#include "rpc/agent/inbound/endpoint.h"
#include "rpc/agent/inbound/inbound_call.h"
#include "rpc/agent/inbound/reply_sender.h"
#include "rpc/agent/state/agent_state.h"
#include "rpc/functions/method_definition.h"
#include "rpc/functions/method_table.h"
#include "rpc/functions/run_on.h"
#include "rpc/peers/call_quota.h"
#include "tensor/tensor.h"

namespace hawser::rpc {

class MethodEndpoint final : public Endpoint {
 public:
  struct Options {
    std::shared_ptr<AgentState> state;
    // These must outlive the endpoint.
    const RegisteredMethod* method;
    CallQuota* quota;
    const CallerPermission* permission;
    const ReplySender* replies;
  };

  explicit MethodEndpoint(Options options) : options_(std::move(options)) {}

  const MethodDefinition& definition() const override {
    return *options_.method->definition;
  }
  CallQuota* quota() const override {
    return options_.method->options.counted ? options_.quota : nullptr;
  }

  bool for_unconfirmed_senders() const override {
    return options_.method->options.for_unconfirmed_senders;
  }
  bool for_left_workers() const override {
    return options_.method->options.for_left_workers;
  }

  absl::Status Check(InboundCall& call) const override;
  const RunOn& run_on(const InboundCall& call) const override;
  bool MayRunInline(const InboundCall& call) const override;
  async::RunTime& run_time(const InboundCall&) const override {
    return run_time_;
  }
  bool reads_tensors() const override {
    return options_.method->options.lazy_tensors;
  }
  absl::Status CheckBeforeRun(InboundCall& call) const override;
  void Run(const std::shared_ptr<InboundCall>& call,
           std::vector<tensor::Tensor> tensors) const override;

 private:
  const Options options_;
  mutable async::RunTime run_time_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_AGENT_INBOUND_METHOD_ENDPOINT_H_
