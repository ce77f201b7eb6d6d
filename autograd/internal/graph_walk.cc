#include "autograd/internal/graph_walk.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "async/check.h"
#include "async/exceptions.h"
#include "async/status_macros.h"
#include "autograd/accumulate_grad.h"
#include "tensor/ops/elementwise.h"
#include "tensor/ops/in_place.h"

namespace hawser::autograd::internal {
namespace {

absl::string_view NameOf(const Node& node) {
  return {node.name().data(), node.name().size()};
}

}  // namespace

GraphWalk::~GraphWalk() {
  for (const Slot& slot : slots_) {
    if (slot.node->scratch_owner_.load(std::memory_order_relaxed) == this) {
      slot.node->scratch_owner_.store(nullptr, std::memory_order_release);
    }
  }
}

// A node that is not owned by this walk may be free now, but in the map already
// because it was owned by another pass before.
GraphWalk::SlotIndex GraphWalk::FindOrAdd(Node* node) {
  const GraphWalk* owner = node->scratch_owner_.load(std::memory_order_relaxed);
  if (owner == this) return node->scratch_slot_;
  if (!slots_of_contended_.empty()) {
    auto found = slots_of_contended_.find(node);
    if (found != slots_of_contended_.end()) return found->second;
  }
  const SlotIndex index = static_cast<SlotIndex>(slots_.size());
  slots_.push_back({.node = node, .gradients = {}});
  owner = nullptr;
  // Acquire: the previous owner's use of `scratch_slot_` happens before ours.
  if (node->scratch_owner_.compare_exchange_strong(
          owner, this, std::memory_order_acquire, std::memory_order_relaxed)) {
    node->scratch_slot_ = index;
  } else {
    slots_of_contended_.emplace(node, index);
  }
  return index;
}

GraphWalk::SlotIndex GraphWalk::Find(const Node* node) const {
  if (node->scratch_owner_.load(std::memory_order_relaxed) == this) {
    return node->scratch_slot_;
  }
  const auto found = slots_of_contended_.find(node);
  return found == slots_of_contended_.end() ? kNotInGraph : found->second;
}

absl::Status GraphWalk::CountEdge(const Edge& edge) {
  if (edge.input_index >= edge.node->num_inputs()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "an edge leads to input ", edge.input_index, " of ", NameOf(*edge.node),
        ", whose number of inputs is ", edge.node->num_inputs()));
  }
  ++slots_[FindOrAdd(edge.node.get())].num_missing;
  return absl::OkStatus();
}

absl::Status GraphWalk::Build(std::vector<Edge> roots,
                              std::vector<std::shared_ptr<Node>> extra_nodes) {
  roots_ = std::move(roots);
  extra_nodes_ = std::move(extra_nodes);
  for (const Edge& root : roots_) {
    if (root) RETURN_IF_ERROR(CountEdge(root));
  }
  for (const auto& node : extra_nodes_) {
    if (node == nullptr) {
      return absl::InvalidArgumentError("an extra node is null");
    }
    ++slots_[FindOrAdd(node.get())].num_missing;
  }
  // The loop appends to `slots_` until it has all nodes.
  for (size_t i = 0; i < slots_.size(); ++i) {
    for (const Edge& edge : slots_[i].node->next_edges()) {
      if (edge) RETURN_IF_ERROR(CountEdge(edge));
    }
  }
  return absl::OkStatus();
}

void GraphWalk::RestrictTo(std::span<const Edge> targets) {
  targets_.assign(targets.begin(), targets.end());
  captured_.resize(targets_.size());
  std::vector<std::vector<SlotIndex>> sources(slots_.size());
  for (size_t i = 0; i < slots_.size(); ++i) {
    slots_[i].wanted = false;
    for (const Edge& edge : slots_[i].node->next_edges()) {
      if (edge) {
        sources[Find(edge.node.get())].push_back(static_cast<SlotIndex>(i));
      }
    }
  }
  std::vector<SlotIndex> leading_to;
  for (size_t i = 0; i < targets_.size(); ++i) {
    const SlotIndex index = Find(targets_[i].node.get());
    if (index == kNotInGraph) continue;
    targets_of_[targets_[i].node.get()].push_back(i);
    if (!std::exchange(slots_[index].is_target, true)) {
      leading_to.push_back(index);
    }
  }
  while (!leading_to.empty()) {
    const SlotIndex index = leading_to.back();
    leading_to.pop_back();
    for (SlotIndex source : sources[index]) {
      if (!std::exchange(slots_[source].wanted, true)) {
        leading_to.push_back(source);
      }
    }
  }
}

absl::Status GraphWalk::AddTo(Slot& slot, uint32_t input_index,
                              Tensor gradient) {
  if (!gradient.defined()) return absl::OkStatus();
  if (slot.gradients.empty()) slot.gradients.resize(slot.node->num_inputs());
  Tensor& sum = slot.gradients[input_index];
  if (!sum.defined()) {
    sum = std::move(gradient);
    return absl::OkStatus();
  }
  if (sum.shape() != gradient.shape() || sum.dtype() != gradient.dtype()) {
    return absl::InvalidArgumentError(
        absl::StrCat(NameOf(*slot.node), ": got gradients ", sum.ToString(),
                     " and ", gradient.ToString(), " for one tensor"));
  }
  // Shared memory must not change, and a broadcast view cannot be written.
  if (sum.is_contiguous() && sum.is_unshared()) {
    return tensor::AddInPlace(sum, gradient);
  }
  if (gradient.is_contiguous() && gradient.is_unshared()) {
    RETURN_IF_ERROR(tensor::AddInPlace(gradient, sum));
    sum = std::move(gradient);
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(sum, tensor::Add(sum, gradient));
  return absl::OkStatus();
}

void GraphWalk::Report(SlotIndex index, bool live) {
  Slot& slot = slots_[index];
  slot.live |= live;
  if (--slot.num_missing > 0) return;
  ready_.push_back({slot.node->sequence_number(), index});
  std::push_heap(ready_.begin(), ready_.end());
}

absl::Status GraphWalk::Start(std::span<Tensor> root_gradients) {
  HAWSER_CHECK(root_gradients.size() == roots_.size());
  for (size_t i = 0; i < roots_.size(); ++i) {
    if (!roots_[i]) continue;
    const SlotIndex index = Find(roots_[i].node.get());
    RETURN_IF_ERROR(AddTo(slots_[index], roots_[i].input_index,
                          std::move(root_gradients[i])));
    Report(index, /*live=*/true);
  }
  return absl::OkStatus();
}

absl::Status GraphWalk::Feed(size_t extra_node, std::vector<Tensor> gradients) {
  const SlotIndex index = Find(extra_nodes_[extra_node].get());
  for (size_t i = 0; i < gradients.size(); ++i) {
    RETURN_IF_ERROR(AddTo(slots_[index], static_cast<uint32_t>(i),
                          std::move(gradients[i])));
  }
  Report(index, /*live=*/true);
  return absl::OkStatus();
}

void GraphWalk::Skip(size_t extra_node) {
  Report(Find(extra_nodes_[extra_node].get()), /*live=*/false);
}

absl::Status GraphWalk::RunReady() {
  while (!idle()) RETURN_IF_ERROR(RunNext());
  return absl::OkStatus();
}

absl::Status GraphWalk::RunNext() {
  std::pop_heap(ready_.begin(), ready_.end());
  Slot& slot = slots_[ready_.back().slot];
  ready_.pop_back();
  ++num_finished_;
  if (!slot.live || !(slot.wanted || slot.is_target)) {
    ReportAll(*slot.node, /*live=*/false);
    return absl::OkStatus();
  }
  Node& node = *slot.node;
  // Nodes and hooks may be user code.
  return async::CatchExceptions<absl::Status>(node.name(), [&] {
    return RunNode(node, slot.is_target, slot.wanted,
                   std::move(slot.gradients));
  });
}

absl::Status GraphWalk::RunNode(Node& node, bool is_target, bool wanted,
                                std::vector<Tensor> gradients) {
  if (gradients.empty()) {
    if (!node.runs_without_gradients()) {
      if (wanted && !retain_graph_) node.ReleaseSavedTensors();
      ReportAll(node, /*live=*/true);
      return absl::OkStatus();
    }
    gradients.resize(node.num_inputs());
  }
  RETURN_IF_ERROR(node.RunPreHooks(gradients));
  if (is_target) RETURN_IF_ERROR(Capture(node, gradients));
  if (!wanted) {
    ReportAll(node, /*live=*/false);
    return absl::OkStatus();
  }
  if (capture_ != nullptr) {
    if (AccumulateGrad* accumulator = node.accumulator()) {
      return Deliver(*accumulator, std::move(gradients));
    }
  }
  ASSIGN_OR_RETURN(std::vector<Tensor> results, node.Run(std::move(gradients)));
  if (!retain_graph_) node.ReleaseSavedTensors();
  const std::span<const Edge> edges = node.next_edges();
  for (size_t i = 0; i < edges.size(); ++i) {
    if (!edges[i]) continue;
    const SlotIndex next = Find(edges[i].node.get());
    RETURN_IF_ERROR(
        AddTo(slots_[next], edges[i].input_index, std::move(results[i])));
    Report(next, /*live=*/true);
  }
  return absl::OkStatus();
}

void GraphWalk::ReportAll(const Node& node, bool live) {
  for (const Edge& edge : node.next_edges()) {
    if (edge) Report(Find(edge.node.get()), live);
  }
}

absl::Status GraphWalk::Deliver(AccumulateGrad& accumulator,
                                std::vector<Tensor> gradients) {
  if (!gradients[0].defined()) return absl::OkStatus();
  ASSIGN_OR_RETURN(Tensor gradient,
                   accumulator.PrepareGradient(std::move(gradients[0])));
  RETURN_IF_ERROR((*capture_)(accumulator.variable(), std::move(gradient)));
  return accumulator.RunPostHooks();
}

absl::Status GraphWalk::Capture(Node& node,
                                const std::vector<Tensor>& gradients) {
  // Hooks run once for a gradient, also if several targets need it.
  std::vector<Tensor> prepared(gradients.size());
  for (size_t i : targets_of_[&node]) {
    const uint32_t input_index = targets_[i].input_index;
    if (!gradients[input_index].defined()) continue;
    if (!prepared[input_index].defined()) {
      prepared[input_index] = gradients[input_index];
      if (AccumulateGrad* accumulator = node.accumulator()) {
        ASSIGN_OR_RETURN(
            prepared[input_index],
            accumulator->PrepareGradient(std::move(prepared[input_index])));
      }
    }
    captured_[i] = prepared[input_index];
  }
  return absl::OkStatus();
}

void GraphWalk::CheckComplete() const {
  HAWSER_CHECK(num_finished_ == slots_.size())
      << slots_.size() - num_finished_ << " nodes did not run";
}

}  // namespace hawser::autograd::internal
