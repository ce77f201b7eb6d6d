// A call from a peer while it is being served.

#ifndef HAWSER_RPC_AGENT_INBOUND_INBOUND_CALL_H_
#define HAWSER_RPC_AGENT_INBOUND_INBOUND_CALL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rpc/agent/state/agent_state.h"
#include "rpc/agent/state/call_observation.h"
#include "rpc/identity/trace_context.h"
#include "rpc/identity/worker_info.h"
#include "rpc/peers/call_quota.h"
#include "rpc/peers/peer_counters.h"
#include "rpc/transport/payload.h"
#include "rpc/transport/transport.h"
#include "rpc/wire/message_codec.h"
#include "rpc/wire/message_interceptor.h"

namespace hawser::rpc {

class RegisteredFunction;

// Counted in AgentState::inbound_calls() while it lives. If it is destroyed
// without a reply, the caller gets kUnavailable. Fields are used by one thread
// at a time.
class InboundCall {
  // The first member, so that the count falls after all others are destroyed.
  class Counted {
   public:
    explicit Counted(std::shared_ptr<AgentState> state)
        : state_(std::move(state)) {
      state_->inbound_calls().Begin();
    }
    ~Counted() { state_->inbound_calls().End(); }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;

    AgentState& state() const { return *state_; }

   private:
    const std::shared_ptr<AgentState> state_;
  };
  const Counted counted_;

 public:
  InboundCall(std::shared_ptr<AgentState> state,
              std::unique_ptr<IncomingCall> incoming)
      : counted_(std::move(state)), incoming_(std::move(incoming)) {}
  ~InboundCall() {
    if (async_) AddAsync(-1);
    if (observation != nullptr) {
      observation->End(absl::UnavailableError("the worker dropped the call"));
    }
  }
  InboundCall(const InboundCall&) = delete;
  InboundCall& operator=(const InboundCall&) = delete;

  IncomingCall& incoming() { return *incoming_; }

  // Sends the reply. Call at most once; thread-safe.
  void Reply(absl::StatusOr<Payload> reply) {
    if (observation != nullptr) {
      if (reply.ok()) observation->AddReply(reply->size());
      observation->End(reply.status());
    }
    incoming_->Reply(std::move(reply));
  }

  // Records that the result is available. Thread-safe.
  void SetFinished() { finished_.store(true, std::memory_order_relaxed); }
  // Records that the handler has returned: without a result, the call is
  // asynchronous from now on. Call at most once.
  void SetReturned() {
    if (finished_.load(std::memory_order_relaxed)) return;
    async_ = true;
    AddAsync(1);
  }

  // Size of the request on the wire.
  size_t request_bytes = 0;
  // Number of the request at its sender; 0 if it has none.
  uint64_t call_id = 0;
  // The sender, as far as it is known.
  WorkerInfo source;
  // Whether the sender says it is a member, and is not a known peer. Nothing
  // may be kept under its incarnation, which may be that of another worker.
  bool unconfirmed = false;
  // Counters of the sender; null if it is not a known peer.
  std::shared_ptr<PeerCounters> counters;
  // Set if the request is recorded.
  std::optional<AutogradMetadata> autograd;
  TraceContext trace;
  // Until the arguments are read.
  std::optional<IncomingMessage> message;
  // Share of the sender's quota.
  CallQuota::Reservation reservation;
  // For a call of a function, with its encoded arguments, a part of `message`.
  const RegisteredFunction* function = nullptr;
  std::string_view arguments;
  // Null if the call is not observed.
  std::shared_ptr<CallObservation> observation;

 private:
  void AddAsync(int number) {
    counted_.state().async_inbound_calls().fetch_add(number,
                                                     std::memory_order_relaxed);
  }

  const std::unique_ptr<IncomingCall> incoming_;
  std::atomic<bool> finished_{false};
  bool async_ = false;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_AGENT_INBOUND_INBOUND_CALL_H_
