// Overhead of recording and of the backward engine: chains and fans of
// operations on tensors of one element. Items are nodes.

#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "autograd/backward.h"
#include "autograd/grad_mode.h"
#include "autograd/node.h"
#include "autograd/ops/elementwise.h"
#include "autograd/variable.h"
#include "benchmark/benchmark.h"
#include "tensor/ops/elementwise.h"
#include "tensor/tensor.h"

namespace hawser::autograd {
namespace {

Tensor Leaf() {
  const Tensor leaf = Tensor::Ones({1});
  if (!SetRequiresGrad(leaf).ok()) std::abort();
  return leaf;
}

// A node without arithmetic, which measures the engine alone.
class PassNode final : public Node {
 public:
  explicit PassNode(std::vector<Edge> edges) : Node(std::move(edges)) {}
  std::string_view name() const override { return "PassBackward"; }
  absl::StatusOr<std::vector<Tensor>> Apply(
      std::vector<Tensor> grad_outputs) override {
    return std::vector<Tensor>(next_edges().size(), grad_outputs[0]);
  }
};

void BM_EngineOverChain(benchmark::State& state) {
  const Tensor leaf = Leaf();
  Tensor root = leaf;
  for (int i = 0; i < state.range(0); ++i) {
    const Tensor next = Tensor::Ones({1});
    SetHistory(next, std::make_shared<PassNode>(std::vector{GradEdge(root)}),
               0);
    root = next;
  }
  for (auto _ : state) {
    if (!Backward(root, {.retain_graph = true}).ok()) std::abort();
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_EngineOverChain)->Arg(10)->Arg(1000)->Arg(100000);

void BM_EngineOverFan(benchmark::State& state) {
  const Tensor leaf = Leaf();
  std::vector<Edge> edges;
  for (int i = 0; i < state.range(0); ++i) {
    edges.push_back(
        {std::make_shared<PassNode>(std::vector{GradEdge(leaf)}), 0});
  }
  const Tensor root = Tensor::Ones({1});
  SetHistory(root, std::make_shared<PassNode>(std::move(edges)), 0);
  for (auto _ : state) {
    if (!Backward(root, {.retain_graph = true}).ok()) std::abort();
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_EngineOverFan)->Arg(1000);

void BM_BareMul(benchmark::State& state) {
  const Tensor a = Tensor::Ones({1});
  for (auto _ : state) benchmark::DoNotOptimize(tensor::Mul(a, a));
}
BENCHMARK(BM_BareMul);

void BM_MulUnderNoGrad(benchmark::State& state) {
  const Tensor a = Leaf();
  NoGradGuard no_grad;
  for (auto _ : state) benchmark::DoNotOptimize(autograd::Mul(a, a));
}
BENCHMARK(BM_MulUnderNoGrad);

void BM_RecordMul(benchmark::State& state) {
  const Tensor a = Leaf();
  const Edge accumulator = GradEdge(a);  // as a graph that is alive holds it
  for (auto _ : state) benchmark::DoNotOptimize(autograd::Mul(a, a));
}
BENCHMARK(BM_RecordMul);

void BM_ForwardAndBackwardOfMuls(benchmark::State& state) {
  const Tensor leaf = Leaf();
  for (auto _ : state) {
    Tensor y = leaf;
    for (int i = 0; i < state.range(0); ++i) y = *autograd::Mul(y, leaf);
    if (!Backward(y).ok()) std::abort();
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_ForwardAndBackwardOfMuls)->Arg(100);

}  // namespace
}  // namespace hawser::autograd
