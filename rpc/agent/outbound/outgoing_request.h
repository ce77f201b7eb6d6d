// Request of one attempt of a call to a peer.

#ifndef HAWSER_RPC_AGENT_OUTBOUND_OUTGOING_REQUEST_H_
#define HAWSER_RPC_AGENT_OUTBOUND_OUTGOING_REQUEST_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "async/clock.h"
#include "rpc/agent/outbound/outgoing_call.h"
#include "rpc/agent/state/call_observation.h"
#include "rpc/identity/trace_context.h"
#include "rpc/peers/peer.h"
#include "tensor/tensor.h"

namespace hawser::rpc {

struct OutgoingRequest {
  std::shared_ptr<OutgoingCall> call;
  std::shared_ptr<Peer> peer;
  // The called function or method, for errors: "function 'example.Add'".
  std::string description;
  // Path of the gRPC method; lives as long as the process.
  std::string_view path;
  std::string body;
  std::vector<tensor::Tensor> tensors;
  // Whether the agent's MessageInterceptor is called.
  bool intercept_messages = false;
  // MethodCallOptions::in_place_reply.
  bool in_place_reply = false;
  // Whether the peer must not run it twice.
  bool at_most_once = false;
  // Whether it is a heartbeat or a leave notice: it also goes to a peer that
  // has left, and is not counted.
  bool control = false;
  // Whether an earlier attempt was sent, and may have run.
  bool attempted = false;
  // Whether the end of the current inbound call cancels it.
  bool inherit_cancellation = true;
  async::MonotonicTime deadline = async::kNever;
  TraceContext trace = {};
  // Null if the call is not observed.
  std::shared_ptr<CallObservation> observation = nullptr;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_AGENT_OUTBOUND_OUTGOING_REQUEST_H_
