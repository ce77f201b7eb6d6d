// A call from a peer while it is being served.

#ifndef HAWSER_RPC_INTERNAL_SERVED_CALL_H_
#define HAWSER_RPC_INTERNAL_SERVED_CALL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "rpc/call_quota.h"
#include "rpc/internal/agent_impl.h"
#include "rpc/message_codec.h"
#include "rpc/message_hook.h"
#include "rpc/transport.h"
#include "rpc/types.h"

namespace hawser::rpc {

// Counted while it lives. Dropped, it answers that the worker dropped it.
class Agent::Impl::ServedCall {
 public:
  ServedCall(std::shared_ptr<Shared> shared,
             std::unique_ptr<IncomingCall> incoming)
      : shared_(std::move(shared)), incoming_(std::move(incoming)) {
    shared_->num_server_calls.fetch_add(1, std::memory_order_relaxed);
  }
  ~ServedCall() {
    shared_->num_server_calls.fetch_sub(1, std::memory_order_relaxed);
  }
  ServedCall(const ServedCall&) = delete;
  ServedCall& operator=(const ServedCall&) = delete;

  IncomingCall& incoming() { return *incoming_; }

  // Of the request as it came.
  size_t request_bytes = 0;
  // The sender's number of the request; 0 if it has none.
  uint64_t call_id = 0;
  // Who calls, as far as known.
  WorkerInfo source;
  // Of the request, if it is recorded.
  std::optional<AutogradMetadata> autograd;
  // Until the arguments are read.
  std::optional<IncomingMessage> message;
  // What the call takes of the sender's share.
  CallQuota::Ticket ticket;

 private:
  const std::shared_ptr<Shared> shared_;
  const std::unique_ptr<IncomingCall> incoming_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_INTERNAL_SERVED_CALL_H_
