// Interface between the pipeline of inbound calls and the methods served.

#ifndef HAWSER_RPC_AGENT_INBOUND_ENDPOINT_H_
#define HAWSER_RPC_AGENT_INBOUND_ENDPOINT_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "async/run_time.h"
#include "rpc/agent/inbound/inbound_call.h"
#include "rpc/functions/method_definition.h"
#include "rpc/functions/run_on.h"
#include "rpc/peers/call_quota.h"
#include "tensor/tensor.h"

namespace hawser::rpc {

// A protobuf method that peers call: InboundCalls runs every call of it through
// the same steps. Thread-safe.
class Endpoint {
 public:
  virtual ~Endpoint() = default;

  virtual const MethodDefinition& definition() const = 0;
  // Quota that counts its calls; null for none.
  virtual CallQuota* quota() const = 0;
  // As MethodOptions::for_left_workers.
  virtual bool for_left_workers() const { return false; }
  // As MethodOptions::for_unconfirmed_senders.
  virtual bool for_unconfirmed_senders() const { return false; }
  // Whether many concurrent calls are expected.
  virtual bool hot() const { return false; }

  // Reads what selects the handler of an admitted call, and checks that the
  // caller may use it.
  virtual absl::Status Check(InboundCall& call) const = 0;

  // Executor for the handler of a call that was checked.
  virtual const RunOn& run_on(const InboundCall& call) const = 0;
  // Whether a call with RunOn::Inline() stays in the transport's thread now.
  virtual bool MayRunInline(const InboundCall& call) const = 0;
  // Run times of earlier calls of the same handler.
  virtual async::RunTime& run_time(const InboundCall& call) const = 0;

  // Runs in the thread of the handler, before tensors are read. An error is the
  // reply.
  virtual absl::Status CheckBeforeRun(InboundCall& call) const {
    (void)call;
    return absl::OkStatus();
  }
  // Whether Run gets no tensors, because the handler reads them itself.
  virtual bool reads_tensors() const { return false; }
  // Runs the handler and replies. CurrentCall and the caller's TaskContext are
  // set.
  virtual void Run(const std::shared_ptr<InboundCall>& call,
                   std::vector<tensor::Tensor> tensors) const = 0;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_AGENT_INBOUND_ENDPOINT_H_
