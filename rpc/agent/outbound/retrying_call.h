// Call of a service's method, with its attempts.

#ifndef HAWSER_RPC_AGENT_OUTBOUND_RETRYING_CALL_H_
#define HAWSER_RPC_AGENT_OUTBOUND_RETRYING_CALL_H_

#include <atomic>
#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/future.h"
#include "rpc/agent/outbound/outgoing_call.h"
#include "rpc/agent/outbound/peer_finder.h"
#include "rpc/agent/outbound/request_sender.h"
#include "rpc/agent/state/agent_state.h"
#include "rpc/agent/state/call_observation.h"
#include "rpc/functions/method.h"
#include "rpc/functions/method_definition.h"
#include "rpc/identity/trace_context.h"
#include "rpc/peers/peer.h"

namespace hawser::rpc {

// Repeats a call that may run more than once after kUnavailable, unless the
// peer is lost, and after the timeout of an attempt: after 50 ms, and after
// twice as long each further time, up to 2 s, until the call's deadline. With
// MethodCallOptions::follow_restarts, a lost peer is looked for under its name
// before each attempt.
//
// Keeps itself alive while an attempt or the wait for the next one is in
// progress. Thread-safe.
class RetryingCall : public std::enable_shared_from_this<RetryingCall> {
 public:
  struct Options {
    std::shared_ptr<AgentState> state;
    RequestSender* sender;
    PeerFinder* peers;
    const MethodDefinition* definition;
    RawMessage request;
    std::shared_ptr<Peer> peer;
    async::MonotonicTime deadline;
    MethodCallOptions call_options;
    TraceContext trace;
    std::shared_ptr<CallObservation> observation;
    // Runs once, after the future has completed.
    std::function<void(RetryingCall* call)> on_end;
  };

  explicit RetryingCall(Options options) : options_(std::move(options)) {}
  RetryingCall(const RetryingCall&) = delete;
  RetryingCall& operator=(const RetryingCall&) = delete;

  // Sends the first attempt. Call once. Returns the future of the reply.
  async::Future<RawMessage> Begin();
  // Ends the call with kCancelled. No attempt may be in flight.
  void Abandon();

 private:
  void Attempt();
  // Replaces a lost peer by its successor, if there is one.
  void FollowRestart();
  void OnReply(absl::StatusOr<ReceivedMessage> reply);
  // Schedules the next attempt, or ends the call.
  void OnFailure(absl::Status status);
  bool MayRetry(const absl::Status& status) const;
  // Whether a successor of the peer rejected the request as not for it.
  bool ReachedSuccessor(const absl::Status& status) const;
  void End(absl::StatusOr<RawMessage> result);

  const Options options_;
  const std::shared_ptr<OutgoingCall> call_ = std::make_shared<OutgoingCall>();
  async::Promise<RawMessage> promise_;
  std::atomic<bool> ended_{false};
  // Used by one attempt at a time.
  std::shared_ptr<Peer> peer_ = options_.peer;
  bool attempted_ = false;
  absl::Duration backoff_ = absl::Milliseconds(50);
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_AGENT_OUTBOUND_RETRYING_CALL_H_
