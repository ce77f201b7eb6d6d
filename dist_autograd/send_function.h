#ifndef HAWSER_DIST_AUTOGRAD_SEND_FUNCTION_H_
#define HAWSER_DIST_AUTOGRAD_SEND_FUNCTION_H_

#include <string_view>
#include <vector>

#include "autograd/node.h"
#include "dist_autograd/ids.h"
#include "rpc/identity/worker_run.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::dist_autograd {

// Shape and dtype of a tensor in a message, and therefore of its gradient.
struct TensorSpec {
  tensor::Shape shape;
  tensor::DType dtype = tensor::DType::kF32;
};

// Node at the sending end of a forward message, at which the gradients of its
// tensors enter this worker's graph. The engine feeds it, and it passes the
// gradients on. Constant, hence thread-safe.
class SendFunction final : public autograd::Node {
 public:
  // `tensors` are those of the message that require gradients, in order.
  SendFunction(AutogradMessageId message, rpc::WorkerRun peer,
               const std::vector<Tensor>& tensors);

  std::string_view name() const override { return "SendFunction"; }
  absl::StatusOr<std::vector<Tensor>> Apply(
      std::vector<Tensor> gradients) override;

  AutogradMessageId message() const { return message_; }
  // The worker to which the message was sent.
  rpc::WorkerRun peer() const { return peer_; }
  // Specs of the tensors, in order.
  const std::vector<TensorSpec>& specs() const { return specs_; }

 private:
  const AutogradMessageId message_;
  const rpc::WorkerRun peer_;
  std::vector<TensorSpec> specs_;
};

}  // namespace hawser::dist_autograd

#endif  // HAWSER_DIST_AUTOGRAD_SEND_FUNCTION_H_
