#include "autograd/internal/record.h"

namespace hawser::autograd::internal {

std::vector<Edge> EdgesOf(std::span<const Tensor* const> inputs) {
  std::vector<Edge> edges;
  edges.reserve(inputs.size());
  for (const Tensor* input : inputs) edges.push_back(GradEdge(*input));
  return edges;
}

std::vector<Edge> EdgesOf(std::span<const Tensor> inputs) {
  std::vector<Edge> edges;
  edges.reserve(inputs.size());
  for (const Tensor& input : inputs) edges.push_back(GradEdge(input));
  return edges;
}

}  // namespace hawser::autograd::internal
