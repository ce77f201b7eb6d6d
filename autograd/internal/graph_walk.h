#ifndef HAWSER_AUTOGRAD_INTERNAL_GRAPH_WALK_H_
#define HAWSER_AUTOGRAD_INTERNAL_GRAPH_WALK_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "autograd/node.h"
#include "tensor/tensor.h"

namespace hawser::autograd::internal {

using CaptureFunction =
    absl::AnyInvocable<absl::Status(const Tensor& variable, Tensor gradient)>;

// One walk through a graph, driven by its owner:
//
//   1. Build discovers all nodes and counts the edges that lead to each.
//   2. Start, Feed and Skip pass gradients in. A node becomes ready when all
//      its edges have reported.
//   3. RunNext runs the ready node with the largest sequence number, which
//      reports to the nodes of its edges.
//
// Uses one table entry per node and does not recurse. Nodes are found through a
// scratch field in each, or, if another pass over the same graph owns that,
// through a hash map.
//
// Not thread-safe: the owner must order calls and the destructor. The graph
// must not change from Build until destruction. After an error the pass can
// only be destroyed.
class GraphWalk {
 public:
  // `capture`: see GraphTaskOptions. May be null; must outlive the pass.
  GraphWalk(bool retain_graph, CaptureFunction* capture)
      : retain_graph_(retain_graph), capture_(capture) {}
  ~GraphWalk();
  GraphWalk(const GraphWalk&) = delete;
  GraphWalk& operator=(const GraphWalk&) = delete;

  // Errors as of GraphTask::Create.
  absl::Status Build(std::vector<Edge> roots,
                     std::vector<std::shared_ptr<Node>> extra_nodes);

  // After Build: makes the pass compute only the gradients of `targets` and not
  // deliver to leaves. Every target must have a node.
  void RestrictTo(std::span<const Edge> targets);

  // Takes one gradient for each root.
  absl::Status Start(std::span<Tensor> root_gradients);
  // `extra_node` is an index into those of Build. Each must be fed or skipped
  // once, with `num_inputs()` gradients.
  absl::Status Feed(size_t extra_node, std::vector<Tensor> gradients);
  void Skip(size_t extra_node);

  bool idle() const { return ready_.empty(); }
  absl::Status RunNext();
  // Runs nodes until idle.
  absl::Status RunReady();

  // Aborts if a node did not run although the pass is idle and has got all
  // inputs. This cannot happen, because edges lead only to older nodes.
  void CheckComplete() const;

  // The gradients of the targets; undefined if none arrived.
  std::vector<Tensor> TakeCaptured() { return std::move(captured_); }

 private:
  using SlotIndex = uint32_t;
  static constexpr SlotIndex kNotInGraph = UINT32_MAX;

  // The state of one node.
  struct Slot {
    Node* node;
    // Number of edges, roots and feeds that have not reported yet.
    uint32_t num_missing = 0;
    // Whether one of them reported without being skipped.
    bool live = false;
    bool is_target = false;
    // Whether to run the node. Otherwise the walk only reports for it.
    bool wanted = true;
    // Empty while all gradients are undefined.
    std::vector<Tensor> gradients;
  };
  struct Ready {
    uint64_t sequence_number;
    SlotIndex slot;
    friend bool operator<(const Ready& a, const Ready& b) {
      return a.sequence_number < b.sequence_number;
    }
  };

  SlotIndex FindOrAdd(Node* node);
  SlotIndex Find(const Node* node) const;
  absl::Status CountEdge(const Edge& edge);
  absl::Status AddTo(Slot& slot, uint32_t input_index, Tensor gradient);
  void Report(SlotIndex index, bool live);
  void ReportAll(const Node& node, bool live);
  absl::Status RunNode(Node& node, bool is_target, bool wanted,
                       std::vector<Tensor> gradients);
  absl::Status Deliver(AccumulateGrad& accumulator,
                       std::vector<Tensor> gradients);
  absl::Status Capture(Node& node, const std::vector<Tensor>& gradients);

  const bool retain_graph_;
  CaptureFunction* const capture_;
  // These keep all nodes alive.
  std::vector<Edge> roots_;
  std::vector<std::shared_ptr<Node>> extra_nodes_;
  std::vector<Edge> targets_;
  absl::flat_hash_map<const Node*, std::vector<size_t>> targets_of_;

  std::vector<Slot> slots_;
  // Slots of nodes whose scratch field another pass owned.
  absl::flat_hash_map<const Node*, SlotIndex> slots_of_contended_;
  std::vector<Ready> ready_;  // a heap
  size_t num_finished_ = 0;
  std::vector<Tensor> captured_;
};

}  // namespace hawser::autograd::internal

#endif  // HAWSER_AUTOGRAD_INTERNAL_GRAPH_WALK_H_
