#include "dist_autograd/recv_function.h"

#include <utility>

#include "autograd/variable.h"

namespace hawser::dist_autograd {

std::shared_ptr<RecvFunction> RecvFunction::Create(
    AutogradMessageId message, rpc::WorkerRun peer,
    const std::vector<Tensor>& tensors, std::weak_ptr<GradientSender> sender) {
  auto recv = std::make_shared<RecvFunction>(
      message, peer, static_cast<uint32_t>(tensors.size()), std::move(sender));
  for (size_t i = 0; i < tensors.size(); ++i) {
    autograd::SetHistory(tensors[i], recv, static_cast<uint32_t>(i));
  }
  return recv;
}

absl::StatusOr<std::vector<Tensor>> RecvFunction::Apply(
    std::vector<Tensor> gradients) {
  const std::shared_ptr<GradientSender> sender = sender_.lock();
  if (sender == nullptr) {
    return absl::FailedPreconditionError(
        "the distributed autograd context of this graph has ended: run the "
        "backward pass inside its scope");
  }
  if (absl::Status status = sender->SendGradients(*this, std::move(gradients));
      !status.ok()) {
    return status;
  }
  return std::vector<Tensor>();
}

}  // namespace hawser::dist_autograd
