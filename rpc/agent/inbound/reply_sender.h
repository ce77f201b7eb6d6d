// Sender of the replies to inbound calls.

#ifndef HAWSER_RPC_AGENT_INBOUND_REPLY_SENDER_H_
#define HAWSER_RPC_AGENT_INBOUND_REPLY_SENDER_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rpc/agent/inbound/inbound_call.h"
#include "rpc/agent/state/agent_state.h"
#include "rpc/functions/erased_value.h"
#include "rpc/transport/payload.h"
#include "tensor/tensor.h"

namespace hawser::rpc {

// Thread-safe. The agent's gate must be entered.
class ReplySender {
 public:
  explicit ReplySender(std::shared_ptr<AgentState> state)
      : state_(std::move(state)) {}

  // Replies with the body and the tensors of a method's reply.
  void Send(InboundCall& call, std::string body,
            std::vector<tensor::Tensor> tensors) const;
  // Replies with the result of a function.
  void SendResult(InboundCall& call, absl::StatusOr<ErasedValue> result) const;
  // Replies with an error. Adds the name of this worker, and an ErrorDetail,
  // unless it has one.
  void Fail(InboundCall& call, absl::Status status) const;

 private:
  absl::StatusOr<Payload> Encode(InboundCall& call, std::string body,
                                 std::vector<tensor::Tensor> tensors) const;

  const std::shared_ptr<AgentState> state_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_AGENT_INBOUND_REPLY_SENDER_H_
