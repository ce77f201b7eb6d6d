#ifndef HAWSER_AUTOGRAD_GRAPH_TASK_H_
#define HAWSER_AUTOGRAD_GRAPH_TASK_H_

#include <memory>
#include <span>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/executor.h"
#include "async/future.h"
#include "autograd/node.h"
#include "tensor/tensor.h"

namespace hawser::autograd {

struct GraphTaskOptions {
  // Keeps saved tensors, so that the graph can be run again.
  bool retain_graph = false;

  // If set, receives the defined gradient of each leaf instead of
  // `Grad(variable)`. Runs between the leaf's gradient hooks and its
  // post-accumulate hooks, one call at a time, with no lock held. The gradient
  // may share memory with other tensors: AddGradient copies it if necessary. An
  // error stops the task.
  absl::AnyInvocable<absl::Status(const Tensor& variable, Tensor gradient)>
      capture;

  // Runs the nodes; must outlive the task. If null, nodes run in the thread
  // that calls Run, Feed or Skip, or in one that is running nodes already.
  async::Executor* executor = nullptr;
};

// One backward pass over a graph, some of whose gradients arrive while it runs.
//
// The pass starts at `roots` and at `extra_nodes`. Each extra node (a send
// function) is run once when it is fed, or is skipped. A node runs after all
// nodes of the pass that lead to it. Ready nodes run one at a time, in
// descending order of sequence number, with recording switched off. Several
// tasks may run over one graph concurrently.
//
// Thread-safe. The graph must not change while the task runs.
class GraphTask : public std::enable_shared_from_this<GraphTask> {
 public:
  // Walks the graph and counts dependencies; does not run nodes.
  //
  // Roots without a node are ignored. Roots and extra nodes may both be empty:
  // such a task is done after Run.
  //
  //   kInvalidArgument  an extra node is null or given twice, or an edge names
  //                     an input that its node does not have.
  static absl::StatusOr<std::shared_ptr<GraphTask>> Create(
      std::vector<Edge> roots, std::vector<std::shared_ptr<Node>> extra_nodes,
      GraphTaskOptions options = {});

  ~GraphTask();
  GraphTask(const GraphTask&) = delete;
  GraphTask& operator=(const GraphTask&) = delete;

  // Starts the pass with one gradient for each root; undefined stands for zero.
  // Must be called exactly once, also without roots, before or after any Feed.
  //
  //   kInvalidArgument     the number of gradients is not that of the roots.
  //   kFailedPrecondition  called before.
  // Errors of nodes are returned by `done()`.
  absl::Status Run(std::vector<Tensor> root_gradients);

  // Queues `extra_node` with the gradients of its outputs.
  //
  //   kInvalidArgument     not an extra node of this task, or not
  //                        `num_inputs()` gradients.
  //   kFailedPrecondition  fed or skipped before.
  // OK, without effect, once the task has failed.
  absl::Status Feed(const std::shared_ptr<Node>& extra_node,
                    std::vector<Tensor> gradients);

  // Declares that `extra_node` gets no gradients. Also skips nodes to which
  // only skipped nodes lead. Errors as of Feed.
  absl::Status Skip(const std::shared_ptr<Node>& extra_node);

  // Ends the task with `error`; later nodes do not start. Without effect on a
  // task that is done.
  void Fail(absl::Status error);

  // Completes when the roots and all extra nodes were processed and the last
  // ready node has run, or with the first error. kCancelled if the task is
  // destroyed before, or its executor shut down. Cancelling the future calls
  // Fail(kCancelled). Callbacks run in the thread that ran the last node or
  // called Fail, after the task has released the graph.
  async::Future<void> done() const;

  // The extra nodes that were neither fed nor skipped, in the order of Create.
  std::vector<std::shared_ptr<Node>> waiting_for() const;

 private:
  struct State;
  struct Event;
  class Turn;

  explicit GraphTask(std::unique_ptr<State> state);

  absl::Status Give(const std::shared_ptr<Node>& extra_node, Event event);
  void TakeTurn();
  void RunNodes();
  bool TakeEvents(std::vector<Event>& events, bool& complete);
  absl::Status Handle(std::vector<Event> events);
  void Finish(absl::Status status);

  const std::unique_ptr<State> state_;
};

// All nodes that a pass from `starts` would reach, including `starts`, each
// once, in order of discovery. Ignores null starts.
std::vector<std::shared_ptr<Node>> Reachable(
    std::span<const std::shared_ptr<Node>> starts);

// Those of them without next edges: accumulators and recv functions.
std::vector<std::shared_ptr<Node>> ReachableLeaves(
    std::span<const std::shared_ptr<Node>> starts);

}  // namespace hawser::autograd

#endif  // HAWSER_AUTOGRAD_GRAPH_TASK_H_
