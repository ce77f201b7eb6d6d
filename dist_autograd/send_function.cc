#include "dist_autograd/send_function.h"

#include <utility>

#include "autograd/variable.h"

namespace hawser::dist_autograd {
namespace {

std::vector<autograd::Edge> EdgesOf(const std::vector<Tensor>& tensors) {
  std::vector<autograd::Edge> edges;
  edges.reserve(tensors.size());
  for (const Tensor& t : tensors) edges.push_back(autograd::GradEdge(t));
  return edges;
}

}  // namespace

SendFunction::SendFunction(AutogradMessageId message, rpc::WorkerRun peer,
                           const std::vector<Tensor>& tensors)
    : Node(EdgesOf(tensors), static_cast<uint32_t>(tensors.size())),
      message_(message),
      peer_(peer) {
  specs_.reserve(tensors.size());
  for (const Tensor& t : tensors) specs_.push_back({t.shape(), t.dtype()});
}

absl::StatusOr<std::vector<Tensor>> SendFunction::Apply(
    std::vector<Tensor> gradients) {
  return gradients;
}

}  // namespace hawser::dist_autograd
