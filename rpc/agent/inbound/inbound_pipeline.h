// The steps through which an agent runs every inbound call.

#ifndef HAWSER_RPC_AGENT_INBOUND_INBOUND_PIPELINE_H_
#define HAWSER_RPC_AGENT_INBOUND_INBOUND_PIPELINE_H_

#include <cstddef>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "rpc/agent/inbound/admission.h"
#include "rpc/agent/inbound/endpoint.h"
#include "rpc/agent/inbound/function_runner.h"
#include "rpc/agent/inbound/inbound_call.h"
#include "rpc/agent/inbound/reply_sender.h"
#include "rpc/agent/inbound/sender_directory.h"
#include "rpc/agent/state/agent_state.h"
#include "rpc/identity/worker_info.h"
#include "rpc/peers/duplicate_filter.h"
#include "rpc/transport/transport.h"

namespace hawser::rpc {

// 1. Admission: header, sender, state of this worker, quota. If the sender says
//    that it is a member and is not known, it is looked up in the store, and
//    the call continues on the executor once it is confirmed. Until then
//    nothing is kept under its incarnation, not even the number of the call.
// 2. Endpoint::Check: the handler and the caller's permission.
// 3. Duplicates of a call that must not run twice are discarded, also if they
//    fail step 1 or 2.
// 4. On the executor of the handler, or in the transport's thread if the
//    handler is short (FunctionRunner::RunOrPost): reads the tensors, and runs
//    it under a CurrentCall and the caller's TaskContext.
// 5. The result is encoded and sent in the thread in which it is available.
//
// Steps 1 to 3 run in the transport's thread if the sender is known.
// Thread-safe. The transport must
// be shut down, and the agent's gate closed, before it is destroyed.
class InboundPipeline {
 public:
  // The pointers must outlive this object.
  InboundPipeline(std::shared_ptr<AgentState> state, SenderDirectory* senders,
                  const ReplySender* replies, FunctionRunner* runner);
  InboundPipeline(const InboundPipeline&) = delete;
  InboundPipeline& operator=(const InboundPipeline&) = delete;

  // Serves one call of `endpoint`, which must outlive this object.
  void OnCall(const Endpoint& endpoint, std::unique_ptr<IncomingCall> incoming);

  // Drops the record of the calls of a worker that was lost.
  void Forget(Incarnation worker) { duplicates_.Forget(worker); }
  size_t num_remembered_senders() const { return duplicates_.num_senders(); }

 private:
  static Admission::Target TargetOf(const Endpoint& endpoint);
  // Continues once the sender is confirmed.
  void AwaitSender(const Endpoint& endpoint,
                   const std::shared_ptr<InboundCall>& call);
  // Step 2 and on.
  void Check(const Endpoint& endpoint,
             const std::shared_ptr<InboundCall>& call);
  // Replies with `status`, or discards a duplicate.
  void Refuse(const Endpoint& endpoint, InboundCall& call, absl::Status status);
  void Accept(const Endpoint& endpoint,
              const std::shared_ptr<InboundCall>& call);
  void Run(const Endpoint& endpoint, const std::shared_ptr<InboundCall>& call);
  // Whether an earlier copy of the call was seen.
  bool IsDuplicate(const Endpoint& endpoint, const InboundCall& call);

  const std::shared_ptr<AgentState> state_;
  SenderDirectory& senders_;
  const ReplySender& replies_;
  FunctionRunner& runner_;
  Admission admission_;
  DuplicateFilter duplicates_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_AGENT_INBOUND_INBOUND_PIPELINE_H_
