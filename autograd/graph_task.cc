#include "autograd/graph_task.h"

#include <atomic>
#include <cstddef>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "async/mutex.h"
#include "async/status_macros.h"
#include "autograd/grad_mode.h"
#include "autograd/internal/graph_walk.h"

namespace hawser::autograd {
namespace {

absl::string_view NameOf(const Node& node) {
  return {node.name().data(), node.name().size()};
}

}  // namespace

// An input of the task from another thread.
struct GraphTask::Event {
  enum class Kind { kStart, kFeed, kSkip, kFail };

  Kind kind;
  size_t extra_node = 0;
  std::vector<Tensor> gradients;
  absl::Status error;
};

// `pass` belongs to one thread at a time, the one that set `running`; the mutex
// orders the handover. Other threads leave events in `intake`.
struct GraphTask::State {
  // Constant after Create.
  async::Executor* executor = nullptr;
  size_t num_roots = 0;
  std::vector<std::shared_ptr<Node>> extra_nodes;
  absl::flat_hash_map<const Node*, size_t> extra_node_index;

  // Used only by the running thread.
  internal::CaptureFunction capture;
  std::unique_ptr<internal::GraphWalk> pass;

  async::Promise<void> promise;

  // Lets the running thread check for events without locking for each node.
  std::atomic<bool> has_events{false};

  mutable async::Mutex mutex;
  std::vector<Event> intake ABSL_GUARDED_BY(mutex);
  bool running ABSL_GUARDED_BY(mutex) = false;
  bool finished ABSL_GUARDED_BY(mutex) = false;
  bool started ABSL_GUARDED_BY(mutex) = false;
  std::vector<bool> given ABSL_GUARDED_BY(mutex);
  size_t num_given ABSL_GUARDED_BY(mutex) = 0;
};

// A turn of the running thread as a closure. Ends the task if the executor
// drops it.
class GraphTask::Turn {
 public:
  explicit Turn(std::shared_ptr<GraphTask> task) : task_(std::move(task)) {}
  Turn(Turn&&) = default;
  Turn& operator=(Turn&&) = delete;
  ~Turn() {
    if (task_ != nullptr) {
      task_->Finish(absl::CancelledError(
          "the executor of a backward pass was shut down"));
    }
  }

  void operator()() && { std::exchange(task_, nullptr)->RunNodes(); }

 private:
  std::shared_ptr<GraphTask> task_;
};

absl::StatusOr<std::shared_ptr<GraphTask>> GraphTask::Create(
    std::vector<Edge> roots, std::vector<std::shared_ptr<Node>> extra_nodes,
    GraphTaskOptions options) {
  auto state = std::make_unique<State>();
  state->executor = options.executor;
  state->num_roots = roots.size();
  state->capture = std::move(options.capture);
  for (const auto& node : extra_nodes) {
    if (node == nullptr) {
      return absl::InvalidArgumentError("an extra node is null");
    }
    const size_t index = state->extra_node_index.size();
    if (!state->extra_node_index.emplace(node.get(), index).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("extra node ", NameOf(*node), " is given twice"));
    }
  }
  {
    async::MutexLock lock(&state->mutex);
    state->given.resize(extra_nodes.size());
  }
  state->extra_nodes = extra_nodes;
  state->pass = std::make_unique<internal::GraphWalk>(
      options.retain_graph, state->capture ? &state->capture : nullptr);
  RETURN_IF_ERROR(state->pass->Build(std::move(roots), std::move(extra_nodes)));
  std::shared_ptr<GraphTask> task(new GraphTask(std::move(state)));
  task->state_->promise.OnCancel([weak = std::weak_ptr<GraphTask>(task)] {
    if (auto cancelled = weak.lock()) {
      cancelled->Fail(absl::CancelledError("the backward pass was cancelled"));
    }
  });
  return task;
}

GraphTask::GraphTask(std::unique_ptr<State> state) : state_(std::move(state)) {}
GraphTask::~GraphTask() = default;

async::Future<void> GraphTask::done() const { return state_->promise.future(); }

absl::Status GraphTask::Run(std::vector<Tensor> root_gradients) {
  State& state = *state_;
  if (root_gradients.size() != state.num_roots) {
    return absl::InvalidArgumentError(
        absl::StrCat("a backward pass with ", state.num_roots, " roots got ",
                     root_gradients.size(), " gradients"));
  }
  {
    async::MutexLock lock(&state.mutex);
    if (std::exchange(state.started, true)) {
      return absl::FailedPreconditionError(
          "the backward pass was started before");
    }
    if (state.finished) return absl::OkStatus();
    state.intake.push_back({.kind = Event::Kind::kStart,
                            .gradients = std::move(root_gradients),
                            .error = {}});
    state.has_events.store(true, std::memory_order_relaxed);
    if (std::exchange(state.running, true)) return absl::OkStatus();
  }
  TakeTurn();
  return absl::OkStatus();
}

absl::Status GraphTask::Feed(const std::shared_ptr<Node>& extra_node,
                             std::vector<Tensor> gradients) {
  if (extra_node != nullptr && gradients.size() != extra_node->num_inputs()) {
    return absl::InvalidArgumentError(
        absl::StrCat(NameOf(*extra_node), " takes ", extra_node->num_inputs(),
                     " gradients, but was fed ", gradients.size()));
  }
  return Give(extra_node, {.kind = Event::Kind::kFeed,
                           .gradients = std::move(gradients),
                           .error = {}});
}

absl::Status GraphTask::Skip(const std::shared_ptr<Node>& extra_node) {
  return Give(extra_node,
              {.kind = Event::Kind::kSkip, .gradients = {}, .error = {}});
}

absl::Status GraphTask::Give(const std::shared_ptr<Node>& extra_node,
                             Event event) {
  State& state = *state_;
  const auto found = state.extra_node_index.find(extra_node.get());
  if (found == state.extra_node_index.end()) {
    return absl::InvalidArgumentError(absl::StrCat(
        extra_node == nullptr ? "a null node" : NameOf(*extra_node),
        " is not an extra node of this backward pass"));
  }
  event.extra_node = found->second;
  {
    async::MutexLock lock(&state.mutex);
    if (state.given[found->second]) {
      return absl::FailedPreconditionError(absl::StrCat(
          NameOf(*extra_node), " was fed or skipped before in this pass"));
    }
    state.given[found->second] = true;
    ++state.num_given;
    if (state.finished) return absl::OkStatus();
    state.intake.push_back(std::move(event));
    state.has_events.store(true, std::memory_order_relaxed);
    if (std::exchange(state.running, true)) return absl::OkStatus();
  }
  TakeTurn();
  return absl::OkStatus();
}

void GraphTask::Fail(absl::Status error) {
  State& state = *state_;
  {
    async::MutexLock lock(&state.mutex);
    if (state.finished) return;
    if (std::exchange(state.running, true)) {
      state.intake.push_back({.kind = Event::Kind::kFail,
                              .gradients = {},
                              .error = std::move(error)});
      state.has_events.store(true, std::memory_order_relaxed);
      return;
    }
  }
  Finish(std::move(error));
}

std::vector<std::shared_ptr<Node>> GraphTask::waiting_for() const {
  std::vector<std::shared_ptr<Node>> waiting;
  async::MutexLock lock(&state_->mutex);
  for (size_t i = 0; i < state_->given.size(); ++i) {
    if (!state_->given[i]) waiting.push_back(state_->extra_nodes[i]);
  }
  return waiting;
}

void GraphTask::TakeTurn() {
  if (state_->executor == nullptr) {
    RunNodes();
  } else {
    state_->executor->Post(Turn(shared_from_this()));
  }
}

void GraphTask::RunNodes() {
  NoGradGuard no_grad;
  State& state = *state_;
  while (true) {
    std::vector<Event> events;
    if (state.pass->idle() ||
        state.has_events.load(std::memory_order_relaxed)) {
      bool complete = false;
      if (!TakeEvents(events, complete)) {
        if (complete) {
          state.pass->CheckComplete();
          Finish(absl::OkStatus());
        }
        return;
      }
    }
    absl::Status status = Handle(std::move(events));
    if (status.ok() && !state.pass->idle()) status = state.pass->RunNext();
    if (!status.ok()) {
      Finish(std::move(status));
      return;
    }
  }
}

// Returns false if all events and nodes are done for now. The turn is over
// then, unless the pass is complete.
bool GraphTask::TakeEvents(std::vector<Event>& events, bool& complete) {
  State& state = *state_;
  async::MutexLock lock(&state.mutex);
  events.swap(state.intake);
  state.has_events.store(false, std::memory_order_relaxed);
  if (!events.empty() || !state.pass->idle()) return true;
  complete = state.started && state.num_given == state.given.size();
  if (!complete) state.running = false;
  return false;
}

absl::Status GraphTask::Handle(std::vector<Event> events) {
  internal::GraphWalk& pass = *state_->pass;
  for (Event& event : events) {
    switch (event.kind) {
      case Event::Kind::kStart:
        RETURN_IF_ERROR(pass.Start(event.gradients));
        break;
      case Event::Kind::kFeed:
        RETURN_IF_ERROR(
            pass.Feed(event.extra_node, std::move(event.gradients)));
        break;
      case Event::Kind::kSkip:
        pass.Skip(event.extra_node);
        break;
      case Event::Kind::kFail:
        return event.error;
    }
  }
  return absl::OkStatus();
}

// Called by the running thread at the end of its last turn.
void GraphTask::Finish(absl::Status status) {
  // Releases the scratch fields, buffers and graph before the future completes.
  state_->pass.reset();
  std::vector<Event> dropped;
  {
    async::MutexLock lock(&state_->mutex);
    state_->finished = true;
    dropped.swap(state_->intake);
  }
  state_->promise.Set(std::move(status));
}

std::vector<std::shared_ptr<Node>> Reachable(
    std::span<const std::shared_ptr<Node>> starts) {
  std::vector<std::shared_ptr<Node>> nodes;
  absl::flat_hash_set<const Node*> seen;
  const auto visit = [&](const std::shared_ptr<Node>& node) {
    if (node != nullptr && seen.insert(node.get()).second) {
      nodes.push_back(node);
    }
  };
  for (const auto& start : starts) visit(start);
  for (size_t i = 0; i < nodes.size(); ++i) {
    // Visiting may move the elements of `nodes`, but not the nodes.
    for (const Edge& edge : nodes[i]->next_edges()) visit(edge.node);
  }
  return nodes;
}

std::vector<std::shared_ptr<Node>> ReachableLeaves(
    std::span<const std::shared_ptr<Node>> starts) {
  std::vector<std::shared_ptr<Node>> leaves = Reachable(starts);
  std::erase_if(leaves, [](const std::shared_ptr<Node>& node) {
    return !node->next_edges().empty();
  });
  return leaves;
}

}  // namespace hawser::autograd
