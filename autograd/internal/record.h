#ifndef HAWSER_AUTOGRAD_INTERNAL_RECORD_H_
#define HAWSER_AUTOGRAD_INTERNAL_RECORD_H_

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/status_macros.h"
#include "autograd/grad_mode.h"
#include "autograd/node.h"
#include "autograd/saved_tensor.h"
#include "autograd/variable.h"
#include "tensor/tensor.h"

// Helpers that record the operations of autograd/ops/.
namespace hawser::autograd::internal {

// Whether an operation on these inputs must be recorded.
template <class... Tensors>
bool MustRecord(const Tensors&... inputs) {
  return GradEnabled() && (RequiresGrad(inputs) || ...);
}

// The gradients that a backward step computes, one for each recorded input.
class InputGradients {
 public:
  explicit InputGradients(const Node& node)
      : node_(node), gradients_(node.next_edges().size()) {}

  // Whether gradient `i` is needed. The others stay undefined.
  bool needed(size_t i) const { return node_.needs_gradient(i); }
  size_t size() const { return gradients_.size(); }
  Tensor& operator[](size_t i) { return gradients_[i]; }
  std::vector<Tensor> Take() && { return std::move(gradients_); }

 private:
  const Node& node_;
  std::vector<Tensor> gradients_;
};

// A tensor that the backward step of an operation reads, or none.
struct Keep {
  static Keep Nothing() { return {nullptr, false}; }
  // A tensor that the operation read or created for itself.
  static Keep Input(const Tensor& t) { return {&t, false}; }
  static Keep InputIf(bool wanted, const Tensor& t) {
    return wanted ? Input(t) : Nothing();
  }
  // A tensor that the operation returns.
  static Keep Output(const Tensor& t) { return {&t, true}; }

  const Tensor* tensor;
  bool is_output;
};

// The node of an operation with one output. `BackwardStep` is a const callable:
//   absl::Status(const Tensor& dout, std::span<const Tensor> kept,
//                InputGradients& gradients)
// with the gradient of the output, which is defined, and the kept tensors.
template <size_t kNumKept, class BackwardStep>
class RecordedNode final : public Node {
 public:
  RecordedNode(std::string_view name, std::vector<Edge> edges,
               const std::array<Keep, kNumKept>& kept, BackwardStep step)
      : Node(std::move(edges)), name_(name), step_(std::move(step)) {
    for (size_t i = 0; i < kNumKept; ++i) {
      if (kept[i].tensor == nullptr) continue;
      if (kept[i].is_output) {
        saved_[i].SaveOutput(*kept[i].tensor);
      } else {
        saved_[i].Save(*kept[i].tensor);
      }
    }
  }

  std::string_view name() const override { return name_; }

  absl::StatusOr<std::vector<Tensor>> Apply(
      std::vector<Tensor> grad_outputs) override {
    std::array<Tensor, kNumKept> kept;
    for (size_t i = 0; i < kNumKept; ++i) {
      ASSIGN_OR_RETURN(kept[i], saved_[i].Unpack());
    }
    InputGradients gradients(*this);
    if (grad_outputs[0].defined()) {
      RETURN_IF_ERROR(
          step_(grad_outputs[0], std::span<const Tensor>(kept), gradients));
    }
    return std::move(gradients).Take();
  }

  void ReleaseSavedTensors() override {
    for (SavedTensor& saved : saved_) saved.Release();
  }

 private:
  const std::string_view name_;
  const BackwardStep step_;
  std::array<SavedTensor, kNumKept> saved_;
};

// The edges of `inputs`, which may be undefined.
std::vector<Edge> EdgesOf(std::span<const Tensor* const> inputs);
std::vector<Edge> EdgesOf(std::span<const Tensor> inputs);

// Makes `out` the result of a node with `step`, and returns it. If it is one of
// the inputs, returns a new tensor on the same memory. `name` must outlive the
// node, as a literal does.
template <size_t kNumInputs, size_t kNumKept, class BackwardStep>
Tensor Record(std::string_view name, Tensor out,
              const std::array<const Tensor*, kNumInputs>& inputs,
              const std::array<Keep, kNumKept>& kept, BackwardStep step) {
  for (const Tensor* input : inputs) {
    if (out.is_same(*input)) out = out.Detach();
  }
  SetHistory(out,
             std::make_shared<RecordedNode<kNumKept, BackwardStep>>(
                 name, EdgesOf(inputs), kept, std::move(step)),
             0);
  return out;
}

}  // namespace hawser::autograd::internal

#endif  // HAWSER_AUTOGRAD_INTERNAL_RECORD_H_
