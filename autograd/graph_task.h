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
  // Keep saved tensors, so that the graph can be run again.
  bool retain_graph = false;

  // If set, gets the gradient of each leaf (undefined ones left out) instead of
  // `Grad(variable)`. It runs between the leaf's gradient hooks and its
  // post-accumulate hooks, one call at a time, no lock held. The gradient may
  // share memory with others: AddGradient takes it over or copies, as needed.
  // An error stops the task.
  absl::AnyInvocable<absl::Status(const Tensor& variable, Tensor gradient)>
      capture;

  // Where nodes run; must outlive the task. Without one they run in the thread
  // that calls Run, Feed or Skip, or in one that is running nodes already.
  async::Executor* executor = nullptr;
};

// One backward pass over a graph, some of whose gradients arrive while it runs.
//
// The pass begins at `roots` and at `extra_nodes`; each extra node (a send
// function) is run once when it is fed, or skipped. A node runs after all nodes
// of the pass that lead to it, ready nodes in descending order of sequence
// number, one at a time, with recording switched off. Several tasks may run
// over one graph at once.
//
// Thread-safe. The graph must not change while the task runs.
class GraphTask : public std::enable_shared_from_this<GraphTask> {
 public:
  // Walks the graph and counts dependencies; runs nothing.
  //
  // Roots without a node are allowed and ignored. Roots and extra nodes may
  // both be empty: such a task is done after Run.
  //
  //   kInvalidArgument  an extra node is null or given twice, or an edge names
  //                     an input that its node does not have.
  static absl::StatusOr<std::shared_ptr<GraphTask>> Create(
      std::vector<Edge> roots, std::vector<std::shared_ptr<Node>> extra_nodes,
      GraphTaskOptions options = {});

  ~GraphTask();
  GraphTask(const GraphTask&) = delete;
  GraphTask& operator=(const GraphTask&) = delete;

  // Starts the pass with one gradient for each root, undefined for zero. To be
  // called exactly once, also without roots; before or after any Feed.
  //
  //   kInvalidArgument     not one gradient for each root.
  //   kFailedPrecondition  called before.
  // The errors of nodes go to `done()`.
  absl::Status Run(std::vector<Tensor> root_gradients);

  // Queues `extra_node` with the gradients of its outputs.
  //
  //   kInvalidArgument     not an extra node of this task, or not
  //                        `num_inputs()` gradients.
  //   kFailedPrecondition  fed or skipped before.
  // OK, without effect, once the task has failed.
  absl::Status Feed(const std::shared_ptr<Node>& extra_node,
                    std::vector<Tensor> gradients);

  // Declares that nothing will come for `extra_node`. Nodes that only skipped
  // nodes lead to are skipped as well. Errors as of Feed.
  absl::Status Skip(const std::shared_ptr<Node>& extra_node);

  // Ends the task with `error`; no further node starts. Without effect on a
  // task that is done.
  void Fail(absl::Status error);

  // Completes when the roots and all extra nodes were processed and no node is
  // left to run, or with the first error. kCancelled if the task is destroyed
  // before, or its executor shut down. Cancelling it is Fail(kCancelled).
  // Callbacks run in the thread that ran the last node, or called Fail. By then
  // the task has let go of the graph.
  async::Future<void> done() const;

  // The extra nodes that were neither fed nor skipped, in the order given.
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

// All nodes that a pass from `starts` would reach, the starts included, each
// once, in order of discovery. Null starts are ignored.
std::vector<std::shared_ptr<Node>> Reachable(
    std::span<const std::shared_ptr<Node>> starts);

// Those of them without next edges: accumulators and recv functions.
std::vector<std::shared_ptr<Node>> ReachableLeaves(
    std::span<const std::shared_ptr<Node>> starts);

}  // namespace hawser::autograd

#endif  // HAWSER_AUTOGRAD_GRAPH_TASK_H_
