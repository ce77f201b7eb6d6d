#ifndef HAWSER_DIST_AUTOGRAD_RECV_FUNCTION_H_
#define HAWSER_DIST_AUTOGRAD_RECV_FUNCTION_H_

#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "autograd/node.h"
#include "dist_autograd/ids.h"
#include "rpc/identity/worker_run.h"
#include "tensor/tensor.h"

namespace hawser::dist_autograd {

class RecvFunction;

// Interface to which recv functions give the gradients that have to be sent.
class GradientSender {
 public:
  virtual ~GradientSender() = default;

  // Takes one gradient, perhaps undefined, per flagged tensor of the message
  // that `recv` stands for. Does not wait for their arrival.
  //
  //   kFailedPrecondition  no distributed backward pass is running.
  virtual absl::Status SendGradients(const RecvFunction& recv,
                                     std::vector<Tensor> gradients) = 0;
};

// The receiving end of a forward message: the history of its tensors that
// require gradients. Thread-safe.
class RecvFunction final : public autograd::Node {
 public:
  // Makes itself the history of `tensors`, in order.
  static std::shared_ptr<RecvFunction> Create(
      AutogradMessageId message, rpc::WorkerRun peer,
      const std::vector<Tensor>& tensors, std::weak_ptr<GradientSender> sender);

  RecvFunction(AutogradMessageId message, rpc::WorkerRun peer,
               uint32_t num_tensors, std::weak_ptr<GradientSender> sender)
      : Node({}, num_tensors),
        message_(message),
        peer_(peer),
        sender_(std::move(sender)) {}

  std::string_view name() const override { return "RecvFunction"; }

  // kFailedPrecondition  outside a distributed backward pass, or after the end
  //                      of the context.
  absl::StatusOr<std::vector<Tensor>> Apply(
      std::vector<Tensor> gradients) override;
  // The sender waits for gradients or zeros.
  bool runs_without_gradients() const override { return true; }

  AutogradMessageId message() const { return message_; }
  // The worker the message came from.
  rpc::WorkerRun peer() const { return peer_; }

 private:
  const AutogradMessageId message_;
  const rpc::WorkerRun peer_;
  const std::weak_ptr<GradientSender> sender_;
};

}  // namespace hawser::dist_autograd

#endif  // HAWSER_DIST_AUTOGRAD_RECV_FUNCTION_H_
