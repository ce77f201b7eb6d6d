// Control messages over the connections of peers.

#ifndef HAWSER_RPC_AGENT_OUTBOUND_CONTROL_SENDER_H_
#define HAWSER_RPC_AGENT_OUTBOUND_CONTROL_SENDER_H_

#include <memory>
#include <string_view>
#include <utility>

#include "async/clock.h"
#include "rpc/agent/members/control_calls.h"
#include "rpc/agent/outbound/request_sender.h"
#include "rpc/agent/state/agent_state.h"
#include "rpc/functions/method_definition.h"
#include "rpc/peers/peer.h"

namespace hawser::rpc {

// kCancelled once the agent stops. Thread-safe.
class ControlSender final : public ControlCalls {
 public:
  // `sender` must outlive this object.
  ControlSender(std::shared_ptr<AgentState> state, RequestSender* sender)
      : state_(std::move(state)), sender_(sender) {}

  void Ping(const std::shared_ptr<Peer>& peer, async::MonotonicTime deadline,
            Done done) override;
  void NotifyLeave(const std::shared_ptr<Peer>& peer,
                   async::MonotonicTime deadline, Done done) override;

 private:
  void Send(const std::shared_ptr<Peer>& peer, std::string_view description,
            const MethodName& method, async::MonotonicTime deadline, Done done);

  const std::shared_ptr<AgentState> state_;
  RequestSender* const sender_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_AGENT_OUTBOUND_CONTROL_SENDER_H_
