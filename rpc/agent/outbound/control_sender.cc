#include "rpc/agent/outbound/control_sender.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rpc/agent/state/worker_methods.h"

namespace hawser::rpc {

void ControlSender::Ping(const std::shared_ptr<Peer>& peer,
                         async::MonotonicTime deadline, Done done) {
  Send(peer, "a heartbeat", kHeartbeatMethod, deadline, std::move(done));
}

void ControlSender::NotifyLeave(const std::shared_ptr<Peer>& peer,
                                async::MonotonicTime deadline, Done done) {
  Send(peer, "a leave notice", kLeaveMethod, deadline, std::move(done));
}

void ControlSender::Send(const std::shared_ptr<Peer>& peer,
                         std::string_view description, const MethodName& method,
                         async::MonotonicTime deadline, Done done) {
  Gate::Entry entry(&state_->call_gate());
  const absl::StatusOr<const MethodDefinition*> definition = method.Resolve();
  if (!entry || !definition.ok()) {
    std::move(done)(absl::CancelledError("the agent is stopping"));
    return;
  }
  OutgoingRequest request;
  request.call = std::make_shared<OutgoingCall>();
  request.peer = peer;
  request.description = std::string(description);
  request.path = (*definition)->path;
  request.control = true;
  request.inherit_cancellation = false;
  request.deadline = deadline;
  sender_->Send(std::move(request),
                [done = std::move(done)](
                    const absl::StatusOr<ReceivedMessage>& reply) mutable {
                  std::move(done)(reply.status());
                });
}

}  // namespace hawser::rpc
