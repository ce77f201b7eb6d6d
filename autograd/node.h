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
// node stands for a tensor that does not require a gradient.
struct Edge {
  std::shared_ptr<Node> node;
  uint32_t input_index = 0;

  explicit operator bool() const { return node != nullptr; }
};

// One operation of the recorded graph, which maps the gradients of the
// operation's outputs to the gradients of its inputs.
//
// A node is owned by the tensors that it produced and by the nodes after it.
// Chains of any length are released without recursion. Except for the saved
// tensors, a node is constant once it is part of a graph. Hooks must be
// registered before a pass runs the node. Concurrent passes over one graph run
// `Apply` and `ReleaseSavedTensors` concurrently (SavedTensor supports that).
class Node : public std::enable_shared_from_this<Node> {
 public:
  // Order in which ready nodes run. Later recorded operations run first;
  // `kFirst` is for nodes that only release memory (accumulators).
  enum class Priority { kRecorded, kFirst };

  // next_edges  One for each gradient that `Apply` returns, in order.
  // num_inputs  Number of gradients that `Apply` takes: the operation's
  //             outputs.
  explicit Node(std::vector<Edge> next_edges = {}, uint32_t num_inputs = 1,
                Priority priority = Priority::kRecorded);
  virtual ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // Name in messages, such as "MulBackward".
  virtual std::string_view name() const = 0;

  // Takes `num_inputs()` gradients, of which an undefined one stands for zero,
  // and returns `next_edges().size()` of them. Those of edges without a node
  // are ignored and should be undefined. An error ends the pass; the engine
  // prefixes its message with `name()`.
  virtual absl::StatusOr<std::vector<Tensor>> Apply(
      std::vector<Tensor> grad_outputs) = 0;

  // Called after `Apply` unless the graph is retained. Afterwards `Apply`
  // returns kFailedPrecondition if the node had saved tensors.
  virtual void ReleaseSavedTensors() {}

  // Whether `Apply` also runs if all its gradients are undefined, as it must
  // for a recv function, whose sender waits for a reply. Otherwise the engine
  // takes all its results as undefined. A node all of whose gradients were
  // skipped (GraphTask::Skip) never runs.
  virtual bool runs_without_gradients() const { return false; }

  // Returns this node if it delivers the gradient of a leaf, otherwise null.
  virtual AccumulateGrad* accumulator() { return nullptr; }

  std::span<const Edge> next_edges() const {
    return {next_edges_.data(), next_edges_.size()};
  }
  uint32_t num_inputs() const { return num_inputs_; }

  // Increases in the order of construction; largest for Priority::kFirst.
  uint64_t sequence_number() const { return sequence_number_; }

  // Whether the gradient of the operation's input `i` is needed.
  bool needs_gradient(size_t i) const { return next_edges_[i].node != nullptr; }

  // Runs `hook` on gradient `input_index` once that is complete, before pre
  // hooks.
  HookHandle RegisterGradientHook(uint32_t input_index, GradientHook hook);
  HookHandle RegisterPreHook(NodePreHook hook);
  HookHandle RegisterPostHook(NodePostHook hook);

  // For the engine. Errors of `Apply` and a wrong number of results are
  // prefixed with `name()`.
  absl::Status RunPreHooks(std::vector<Tensor>& grad_outputs);
  absl::StatusOr<std::vector<Tensor>> Run(std::vector<Tensor> grad_outputs);

 private:
  friend class internal::GraphWalk;

  struct Hooks;
  Hooks& MutableHooks();

  const uint64_t sequence_number_;
  const uint32_t num_inputs_;
  // Index of this node's state in the pass that owns the field. One pass at a
  // time owns it; others find the node in a table.
  uint32_t scratch_slot_ = 0;
  std::atomic<const internal::GraphWalk*> scratch_owner_{nullptr};
  absl::InlinedVector<Edge, 3> next_edges_;
  std::unique_ptr<Hooks> hooks_;
};

// Releases `node`, and the nodes that only it kept, without recursion.
void ReleaseNode(std::shared_ptr<Node> node);

}  // namespace hawser::autograd

#endif  // HAWSER_AUTOGRAD_NODE_H_
