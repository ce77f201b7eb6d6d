// Interceptor with which distributed autograd attaches data to messages.

#ifndef HAWSER_RPC_WIRE_MESSAGE_INTERCEPTOR_H_
#define HAWSER_RPC_WIRE_MESSAGE_INTERCEPTOR_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/task_local.h"
#include "rpc/identity/worker_info.h"
#include "tensor/tensor.h"

namespace hawser::rpc {

// The autograd context that a message belongs to.
struct AutogradMetadata {
  uint64_t context_id = 0;
  // Of the worker that made the context.
  Incarnation context_incarnation{};
  uint64_t message_id = 0;
  // For each tensor of the message, whether it requires a gradient.
  std::vector<bool> requires_grad = {};
};

// Intercepts the messages of an agent's user calls, and of control calls that
// request it, on sending and on receipt. Implemented by dist_autograd. Methods
// run concurrently and must not block.
class MessageInterceptor {
 public:
  virtual ~MessageInterceptor() = default;

  // Called before a request or reply with `tensors` is sent to `peer`, under
  // the TaskContext of the caller or of the called function. Returns nullopt if
  // the message is not recorded. An error fails the call.
  virtual absl::StatusOr<std::optional<AutogradMetadata>> OnSend(
      const WorkerInfo& peer, std::span<const tensor::Tensor> tensors) = 0;

  // Called when a recorded request arrives. `tensors` are the arguments of the
  // function, which sees metadata attached to them here. The function runs
  // under the returned context. `requires_grad` has the size of `tensors`.
  virtual absl::StatusOr<async::TaskContext> OnReceiveRequest(
      const WorkerInfo& peer, const AutogradMetadata& metadata,
      std::span<tensor::Tensor> tensors) = 0;

  // Called when a recorded reply arrives, likewise, under the TaskContext of
  // the caller.
  virtual absl::Status OnReceiveReply(const WorkerInfo& peer,
                                      const AutogradMetadata& metadata,
                                      std::span<tensor::Tensor> tensors) = 0;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_WIRE_MESSAGE_INTERCEPTOR_H_
