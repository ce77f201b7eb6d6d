#include "autograd/node.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "async/check.h"
#include "async/status_macros.h"

namespace hawser::autograd {
namespace {

std::atomic<uint64_t> next_sequence_number{0};

// Nodes to release after the one that this thread is releasing further up its
// stack.
thread_local std::vector<std::shared_ptr<Node>>* put_off = nullptr;

absl::Status WithPrefix(std::string_view prefix, const absl::Status& status) {
  absl::Status named(
      status.code(),
      absl::StrCat(absl::string_view(prefix.data(), prefix.size()), ": ",
                   status.message()));
  status.ForEachPayload([&](absl::string_view type, const absl::Cord& payload) {
    named.SetPayload(type, payload);
  });
  return named;
}

// Checks whether a hook may replace `before` with `after`. Either may be
// undefined, which stands for zero.
absl::Status CheckReplacement(absl::string_view hook, size_t position,
                              const Tensor& before, const Tensor& after) {
  if (!before.defined() || !after.defined() ||
      (before.shape() == after.shape() && before.dtype() == after.dtype() &&
       before.device() == after.device())) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "a ", hook, " returned ", after.ToString(), " in place of gradient ",
      position, ", which is ", before.ToString(),
      "; it must return one of the same shape, dtype and device"));
}

// The same for all gradients. The caller checks their number.
absl::Status CheckReplacements(absl::string_view hook,
                               const std::vector<Tensor>& before,
                               const std::vector<Tensor>& after) {
  for (size_t i = 0; i < std::min(before.size(), after.size()); ++i) {
    RETURN_IF_ERROR(CheckReplacement(hook, i, before[i], after[i]));
  }
  return absl::OkStatus();
}

// Runs hooks that receive all gradients of a node.
template <class Hook>
absl::Status RunHooks(absl::string_view hook_name, const HookList<Hook>& hooks,
                      std::vector<Tensor>& gradients) {
  if (hooks.empty()) return absl::OkStatus();
  const std::vector<Tensor> before = gradients;
  for (const auto& hook : hooks.Snapshot()) {
    RETURN_IF_ERROR((*hook)(gradients));
    RETURN_IF_ERROR(CheckReplacements(hook_name, before, gradients));
  }
  return absl::OkStatus();
}

}  // namespace

struct Node::Hooks {
  struct OfInput {
    uint32_t input_index;
    std::shared_ptr<HookList<GradientHook>> list;
  };

  std::vector<OfInput> gradient;
  std::shared_ptr<HookList<NodePreHook>> pre =
      std::make_shared<HookList<NodePreHook>>();
  std::shared_ptr<HookList<NodePostHook>> post =
      std::make_shared<HookList<NodePostHook>>();
};

Node::Node(std::vector<Edge> next_edges, uint32_t num_inputs, Priority priority)
    : sequence_number_(
          priority == Priority::kFirst
              ? std::numeric_limits<uint64_t>::max()
              : next_sequence_number.fetch_add(1, std::memory_order_relaxed)),
      num_inputs_(num_inputs),
      next_edges_(std::make_move_iterator(next_edges.begin()),
                  std::make_move_iterator(next_edges.end())) {}

Node::~Node() {
  for (Edge& edge : next_edges_) ReleaseNode(std::move(edge.node));
}

Node::Hooks& Node::MutableHooks() {
  if (hooks_ == nullptr) hooks_ = std::make_unique<Hooks>();
  return *hooks_;
}

HookHandle Node::RegisterGradientHook(uint32_t input_index, GradientHook hook) {
  HAWSER_CHECK(input_index < num_inputs_)
      << name() << " does not have this output";
  Hooks& hooks = MutableHooks();
  for (Hooks::OfInput& of_input : hooks.gradient) {
    if (of_input.input_index == input_index) {
      return of_input.list->Add(std::move(hook));
    }
  }
  hooks.gradient.push_back(
      {input_index, std::make_shared<HookList<GradientHook>>()});
  return hooks.gradient.back().list->Add(std::move(hook));
}

HookHandle Node::RegisterPreHook(NodePreHook hook) {
  return MutableHooks().pre->Add(std::move(hook));
}

HookHandle Node::RegisterPostHook(NodePostHook hook) {
  return MutableHooks().post->Add(std::move(hook));
}

absl::Status Node::RunPreHooks(std::vector<Tensor>& grad_outputs) {
  if (hooks_ == nullptr) return absl::OkStatus();
  for (const Hooks::OfInput& of_input : hooks_->gradient) {
    Tensor& gradient = grad_outputs[of_input.input_index];
    if (!gradient.defined()) continue;
    for (const auto& hook : of_input.list->Snapshot()) {
      absl::StatusOr<Tensor> replaced = (*hook)(gradient);
      if (!replaced.ok()) return WithPrefix(name(), replaced.status());
      absl::Status status = CheckReplacement(
          "gradient hook", of_input.input_index, gradient, *replaced);
      if (!status.ok()) return WithPrefix(name(), status);
      if (replaced->defined()) gradient = *std::move(replaced);
    }
  }
  absl::Status status = RunHooks("pre hook", *hooks_->pre, grad_outputs);
  if (!status.ok()) return WithPrefix(name(), status);
  if (grad_outputs.size() != num_inputs_) {
    return absl::InternalError(absl::StrCat(
        absl::string_view(name().data(), name().size()), ": a pre hook left ",
        grad_outputs.size(), " gradients; there must be ", num_inputs_));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Tensor>> Node::Run(
    std::vector<Tensor> grad_outputs) {
  absl::StatusOr<std::vector<Tensor>> result = Apply(std::move(grad_outputs));
  if (!result.ok()) return WithPrefix(name(), result.status());
  if (hooks_ != nullptr) {
    absl::Status status = RunHooks("post hook", *hooks_->post, *result);
    if (!status.ok()) return WithPrefix(name(), status);
  }
  if (result->size() != next_edges_.size()) {
    return absl::InternalError(absl::StrCat(
        absl::string_view(name().data(), name().size()), ": returned ",
        result->size(), " gradients for ", next_edges_.size(), " inputs"));
  }
  return result;
}

void ReleaseNode(std::shared_ptr<Node> node) {
  if (node == nullptr || node.use_count() > 1) return;
  if (put_off != nullptr) {
    put_off->push_back(std::move(node));
    return;
  }
  std::vector<std::shared_ptr<Node>> queue;
  put_off = &queue;
  node.reset();
  while (!queue.empty()) {
    std::shared_ptr<Node> next = std::move(queue.back());
    queue.pop_back();
    next.reset();
  }
  put_off = nullptr;
}

}  // namespace hawser::autograd
