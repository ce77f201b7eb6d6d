// Sender of single requests to peers.

#ifndef HAWSER_RPC_AGENT_OUTBOUND_REQUEST_SENDER_H_
#define HAWSER_RPC_AGENT_OUTBOUND_REQUEST_SENDER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rpc/agent/outbound/outgoing_request.h"
#include "rpc/agent/state/agent_state.h"
#include "rpc/transport/payload.h"
#include "rpc/wire/message_codec.h"
#include "tensor/tensor.h"

namespace hawser::rpc {

// A reply with its tensors.
struct ReceivedMessage {
  IncomingMessage message;
  std::vector<tensor::Tensor> tensors;
};

// Encodes a request, hands it to the peer's connection, and reads the reply.
// Thread-safe. The agent's transport must be shut down before it is destroyed.
class RequestSender {
 public:
  using Done = absl::AnyInvocable<void(absl::StatusOr<ReceivedMessage>) &&>;

  explicit RequestSender(std::shared_ptr<AgentState> state)
      : state_(std::move(state)) {}
  RequestSender(const RequestSender&) = delete;
  RequestSender& operator=(const RequestSender&) = delete;

  // Sends `request`; the caller holds an entry of the call gate or of the gate.
  // `done` runs once, under the caller's TaskContext: within Send, or in a
  // thread of the transport, or, after a reply with many bytes, on the
  // executor. All errors have an ErrorDetail.
  //
  // Returns whether the request was handed to a connection.
  bool Send(OutgoingRequest request, Done done);

 private:
  absl::StatusOr<Payload> Encode(OutgoingRequest& request);
  // Runs in the transport's thread.
  void OnReply(const OutgoingRequest& request, absl::StatusOr<Payload> reply,
               Done done);
  static void End(const OutgoingRequest& request,
                  absl::StatusOr<ReceivedMessage> received, Done done);
  absl::StatusOr<ReceivedMessage> ReadReply(const OutgoingRequest& request,
                                            IncomingMessage message);
  // Counts the error of a request that was sent, and adds the request to its
  // text.
  absl::Status CallError(const OutgoingRequest& request,
                         absl::Status status) const;

  const std::shared_ptr<AgentState> state_;
  std::atomic<uint64_t> last_call_id_{0};
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_AGENT_OUTBOUND_REQUEST_SENDER_H_
