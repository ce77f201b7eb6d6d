// A call from a peer while it is being served.

#ifndef HAWSER_RPC_AGENT_INBOUND_CALL_H_
#define HAWSER_RPC_AGENT_INBOUND_CALL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "rpc/agent/agent_impl.h"
#include "rpc/identity/worker_info.h"
#include "rpc/peers/call_quota.h"
#include "rpc/peers/peer_counters.h"
#include "rpc/transport/transport.h"
#include "rpc/wire/message_codec.h"
#include "rpc/wire/message_interceptor.h"

namespace hawser::rpc {

// Counted while it lives. Dropped, it answers that the worker dropped it.
class Agent::Impl::InboundCall {
  // Declared first: of what a call holds, its share of the count goes last.
  class Counted {
   public:
    explicit Counted(std::shared_ptr<Shared> shared)
        : shared_(std::move(shared)) {
      shared_->inbound_calls.Begin();
    }
    ~Counted() { shared_->inbound_calls.End(); }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;

    Shared& shared() const { return *shared_; }

   private:
    const std::shared_ptr<Shared> shared_;
  };
  const Counted counted_;

 public:
  InboundCall(std::shared_ptr<Shared> shared,
              std::unique_ptr<IncomingCall> incoming)
      : counted_(std::move(shared)), incoming_(std::move(incoming)) {}
  ~InboundCall() {
    if (async_) AddAsync(-1);
  }
  InboundCall(const InboundCall&) = delete;
  InboundCall& operator=(const InboundCall&) = delete;

  IncomingCall& incoming() { return *incoming_; }

  // Its result has come, in any thread.
  void SetFinished() { finished_.store(true, std::memory_order_relaxed); }
  // What was run for it has returned: without a result it is asynchronous from
  // now on. At most once, by who holds the call.
  void SetReturned() {
    if (finished_.load(std::memory_order_relaxed)) return;
    async_ = true;
    AddAsync(1);
  }

  // Of the request as it came.
  size_t request_bytes = 0;
  // The sender's number of the request; 0 if it has none.
  uint64_t call_id = 0;
  // Who calls, as far as known.
  WorkerInfo source;
  // Of the same, where it is a peer.
  std::shared_ptr<PeerCounters> counters;
  // Of the request, if it is recorded.
  std::optional<AutogradMetadata> autograd;
  // Until the arguments are read.
  std::optional<IncomingMessage> message;
  // What the call takes of the sender's share.
  CallQuota::Reservation reservation;

 private:
  void AddAsync(int number) {
    counted_.shared().num_async_server_calls.fetch_add(
        number, std::memory_order_relaxed);
  }

  const std::unique_ptr<IncomingCall> incoming_;
  std::atomic<bool> finished_{false};
  bool async_ = false;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_AGENT_INBOUND_CALL_H_
