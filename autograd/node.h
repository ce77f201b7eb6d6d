#ifndef HAWSER_AUTOGRAD_NODE_H_
#define HAWSER_AUTOGRAD_NODE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "autograd/hook.h"
#include "tensor/tensor.h"

namespace hawser::autograd {

class AccumulateGrad;
class Node;

namespace internal {
class GraphWalk;
}  // namespace internal

// Destination of a gradient: input `input_index` of `node`. An edge without a
// node stands for a tensor that needs no gradient.
struct Edge {
  std::shared_ptr<Node> node;
  uint32_t input_index = 0;

  explicit operator bool() const { return node != nullptr; }
};

// One operation of the recorded graph: maps the gradients of the operation's
// outputs to the gradients of its inputs.
//
// A node is owned by the tensors it produced and by the nodes that come after
// it. Chains of any length are released without recursion. Everything but the
// saved tensors is constant once the node is part of a graph; hooks must be
// registered before a pass that runs the node begins. `Apply` and
// `ReleaseSavedTensors` run in several threads at once if several passes run
// over one graph at once (SavedTensor is made for that).
class Node : public std::enable_shared_from_this<Node> {
 public:
  // How soon a node that is ready runs. Later recorded operations run first;
  // `kFirst` is for nodes that only give memory back (accumulators).
  enum class Priority { kRecorded, kFirst };

  // next_edges  One for each gradient that `Apply` returns, in order.
  // num_inputs  How many gradients `Apply` takes: the operation's outputs.
  explicit Node(std::vector<Edge> next_edges = {}, uint32_t num_inputs = 1,
                Priority priority = Priority::kRecorded);
  virtual ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // For messages, as "MulBackward".
  virtual std::string_view name() const = 0;

  // Takes `num_inputs()` gradients, in which an undefined tensor stands for
  // zero, and returns `next_edges().size()` of them; those of edges without a
  // node are ignored and best left undefined. An error ends the pass; the
  // engine puts `name()` before its message.
  virtual absl::StatusOr<std::vector<Tensor>> Apply(
      std::vector<Tensor> grad_outputs) = 0;

  // Called after `Apply` unless the graph is retained. From then on, `Apply`
  // gives kFailedPrecondition if the node had saved tensors.
  virtual void ReleaseSavedTensors() {}

  // Whether `Apply` runs even when every gradient it gets is undefined, as a
  // recv function must that owes its sender an answer. Otherwise the engine
  // takes all of its results to be undefined. A node all of whose gradients
  // were skipped (GraphTask::Skip) never runs.
  virtual bool runs_without_gradients() const { return false; }

  // This node, if it delivers the gradient of a leaf.
  virtual AccumulateGrad* accumulator() { return nullptr; }

  std::span<const Edge> next_edges() const {
    return {next_edges_.data(), next_edges_.size()};
  }
  uint32_t num_inputs() const { return num_inputs_; }

  // Increases in the order of construction; largest for Priority::kFirst.
  uint64_t sequence_number() const { return sequence_number_; }

  // Whether anybody wants the gradient of the operation's input `i`.
  bool needs_gradient(size_t i) const { return next_edges_[i].node != nullptr; }

  // Runs on gradient `input_index` once it is complete, before pre hooks.
  HookHandle RegisterGradientHook(uint32_t input_index, GradientHook hook);
  HookHandle RegisterPreHook(NodePreHook hook);
  HookHandle RegisterPostHook(NodePostHook hook);

  // The engine's two calls. `Apply`'s errors and a wrong number of results
  // come back with `name()` in front.
  absl::Status RunPreHooks(std::vector<Tensor>& grad_outputs);
  absl::StatusOr<std::vector<Tensor>> Run(std::vector<Tensor> grad_outputs);

 private:
  friend class internal::GraphWalk;

  struct Hooks;
  Hooks& MutableHooks();

  const uint64_t sequence_number_;
  const uint32_t num_inputs_;
  // Where the pass that owns this scratch field keeps its state of this node.
  // One pass at a time owns it; others look the node up in a table.
  uint32_t scratch_slot_ = 0;
  std::atomic<const internal::GraphWalk*> scratch_owner_{nullptr};
  absl::InlinedVector<Edge, 3> next_edges_;
  std::unique_ptr<Hooks> hooks_;
};

// Drops `node`, and the nodes that only it kept, without recursion.
void ReleaseNode(std::shared_ptr<Node> node);

}  // namespace hawser::autograd

#endif  // HAWSER_AUTOGRAD_NODE_H_
