// Hook with which distributed autograd attaches data to messages.

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

// What a message says about the autograd context it belongs to.
struct AutogradMetadata {
  uint64_t context_id = 0;
  uint64_t message_id = 0;
  // For each tensor of the message, whether it takes part in autograd.
  std::vector<bool> requires_grad = {};
};

// Sees the user calls of an agent, and those control calls that ask for it, as
// they leave and arrive. Implemented by dist_autograd. Methods run concurrently
// and must not block.
class MessageInterceptor {
 public:
  virtual ~MessageInterceptor() = default;

  // A request or reply with `tensors` is about to be sent to `peer`. Runs under
  // the TaskContext of the caller, or that of the function that was called.
  // No value: the message is not recorded. An error fails the call.
  virtual absl::StatusOr<std::optional<AutogradMetadata>> OnSend(
      const WorkerInfo& peer, std::span<const tensor::Tensor> tensors) = 0;

  // A recorded request arrived. `tensors` are those the function will get:
  // what is attached to them here, it sees. The function runs under the
  // context returned. `requires_grad` has the size of `tensors`.
  virtual absl::StatusOr<async::TaskContext> OnReceiveRequest(
      const WorkerInfo& peer, const AutogradMetadata& metadata,
      std::span<tensor::Tensor> tensors) = 0;

  // A recorded reply arrived; as above. Runs under the TaskContext of the
  // caller.
  virtual absl::Status OnReceiveReply(const WorkerInfo& peer,
                                      const AutogradMetadata& metadata,
                                      std::span<tensor::Tensor> tensors) = 0;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_WIRE_MESSAGE_INTERCEPTOR_H_
