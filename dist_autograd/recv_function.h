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

// Interface to which recv functions pass the gradients to send.
class GradientSender {
 public:
  virtual ~GradientSender() = default;

  // Takes one gradient, which may be undefined, per flagged tensor of the
  // message of `recv`. Does not wait for their arrival.
  //
  //   kFailedPrecondition  a distributed backward pass is not running.
  virtual absl::Status SendGradients(const RecvFunction& recv,
                                     std::vector<Tensor> gradients) = 0;
};

// Node at the receiving end of a forward message, of which the message's
// tensors that require gradients are results. Thread-safe.
class RecvFunction final : public autograd::Node {
 public:
  // Makes `tensors` its results, in order.
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
  // The worker that sent the message.
  rpc::WorkerRun peer() const { return peer_; }

 private:
  const AutogradMessageId message_;
  const rpc::WorkerRun peer_;
  const std::weak_ptr<GradientSender> sender_;
};

}  // namespace hawser::dist_autograd

#endif  // HAWSER_DIST_AUTOGRAD_RECV_FUNCTION_H_
