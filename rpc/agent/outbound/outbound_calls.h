// The calls that an agent makes.

#ifndef HAWSER_RPC_AGENT_OUTBOUND_OUTBOUND_CALLS_H_
#define HAWSER_RPC_AGENT_OUTBOUND_OUTBOUND_CALLS_H_

#include <memory>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/future.h"
#include "async/mutex.h"
#include "rpc/agent/outbound/outgoing_call.h"
#include "rpc/agent/outbound/peer_finder.h"
#include "rpc/agent/outbound/request_sender.h"
#include "rpc/agent/outbound/retrying_call.h"
#include "rpc/agent/state/agent_state.h"
#include "rpc/functions/method.h"
#include "rpc/functions/method_definition.h"
#include "rpc/identity/call_options.h"
#include "rpc/wire/decoder.h"
#include "rpc/wire/encoder.h"

namespace hawser::rpc {

// Begins calls of functions and of methods: finds the peer, encodes the
// request, sends it, repeats it where that is allowed, and decodes the reply.
// Counts them in AgentState::outbound_calls().
//
// Thread-safe. The agent's transport must be shut down, and AbandonRetries
// called, before it is destroyed.
class OutboundCalls {
 public:
  // Receives the reply: a decoder of its results, valid during the callback.
  using FunctionReply = absl::AnyInvocable<void(absl::StatusOr<Decoder*>) &&>;

  // `sender` and `peers` must outlive this object.
  OutboundCalls(std::shared_ptr<AgentState> state, RequestSender* sender,
                PeerFinder* peers);
  OutboundCalls(const OutboundCalls&) = delete;
  OutboundCalls& operator=(const OutboundCalls&) = delete;

  // Calls a registered function, once. `encode` writes the arguments in this
  // call. `done` runs once, with errors as listed at Agent.
  void CallFunction(const std::shared_ptr<OutgoingCall>& call,
                    const Destination& to, const CallOptions& options,
                    std::string_view function, std::string_view signature,
                    absl::FunctionRef<absl::Status(Encoder&)> encode,
                    FunctionReply done);

  // Calls a method of a service; repeats it as RetryingCall describes unless it
  // is AT_MOST_ONCE. Cancelling the future cancels the call.
  async::Future<RawMessage> CallMethod(const Destination& to,
                                       const MethodName& method,
                                       RawMessage request,
                                       const MethodCallOptions& options);

  // Ends the method calls that wait for their next attempt. To be called when
  // the transport is shut down, so that no attempt is in flight.
  void AbandonRetries();

 private:
  absl::StatusOr<OutgoingRequest> PrepareFunctionCall(
      const std::shared_ptr<OutgoingCall>& call, const Destination& to,
      const CallOptions& options, std::string_view function,
      std::string_view signature,
      absl::FunctionRef<absl::Status(Encoder&)> encode);
  absl::StatusOr<std::shared_ptr<RetryingCall>> PrepareMethodCall(
      const Destination& to, const MethodName& method, RawMessage request,
      const MethodCallOptions& options);
  // The trace context of the current inbound call; empty if there is none.
  static TraceContext CurrentTrace();
  std::shared_ptr<CallObservation> Observe(std::string_view method,
                                           std::string_view function,
                                           const Peer& peer,
                                           TraceContext& trace) const;
  void Remove(RetryingCall* call);

  const std::shared_ptr<AgentState> state_;
  RequestSender* const sender_;
  PeerFinder* const peers_;

  async::Mutex mutex_;
  absl::flat_hash_map<RetryingCall*, std::shared_ptr<RetryingCall>> retrying_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_AGENT_OUTBOUND_OUTBOUND_CALLS_H_
