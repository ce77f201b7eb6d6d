#include "autograd/function.h"

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "async/check.h"
#include "async/status_macros.h"
#include "autograd/grad_mode.h"
#include "autograd/node.h"
#include "autograd/saved_tensor.h"
#include "autograd/variable.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace hawser::autograd {
namespace {

// The expected properties of a gradient.
struct TensorKind {
  tensor::Shape shape;
  tensor::TensorOptions options;

  static std::optional<TensorKind> Of(const Tensor& t) {
    if (!t.defined()) return std::nullopt;
    return TensorKind{t.shape(), {t.dtype(), t.device()}};
  }
};

// One application of a Function.
class FunctionNode final : public Node, public FunctionContext {
 public:
  FunctionNode(std::unique_ptr<Function> function,
               std::span<const Tensor> inputs, std::vector<Edge> edges,
               uint32_t num_outputs)
      : Node(std::move(edges), num_outputs), function_(std::move(function)) {
    for (const Tensor& input : inputs) {
      inputs_.push_back(TensorKind::Of(input));
    }
  }

  // Saves the tensors that the function requested, now that the outputs are
  // known.
  void KeepSaved(const std::vector<Tensor>& outputs,
                 std::vector<Tensor> tensors) {
    for (const Tensor& output : outputs) {
      outputs_.push_back(TensorKind::Of(output));
    }
    for (const Tensor& tensor : tensors) {
      bool is_output = false;
      for (const Tensor& output : outputs) is_output |= output.is_same(tensor);
      saved_.emplace_back();
      if (is_output) {
        saved_.back().SaveOutput(tensor);
      } else {
        saved_.back().Save(tensor);
      }
    }
  }

  std::string_view name() const override { return function_->name(); }

  absl::StatusOr<std::vector<Tensor>> Apply(
      std::vector<Tensor> grad_outputs) override {
    for (size_t i = 0; i < grad_outputs.size(); ++i) {
      if (grad_outputs[i].defined() || !outputs_[i].has_value()) continue;
      grad_outputs[i] = Tensor::Zeros(outputs_[i]->shape, outputs_[i]->options);
    }
    ASSIGN_OR_RETURN(std::vector<Tensor> gradients,
                     function_->Backward(*this, std::move(grad_outputs)));
    if (gradients.size() != inputs_.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("Backward returned ", gradients.size(),
                       " gradients for ", inputs_.size(), " inputs"));
    }
    for (size_t i = 0; i < gradients.size(); ++i) {
      RETURN_IF_ERROR(CheckGradient(i, gradients[i]));
    }
    return gradients;
  }

  void ReleaseSavedTensors() override {
    for (SavedTensor& saved : saved_) saved.Release();
  }

  void SaveForBackward(std::vector<Tensor>) override {
    HAWSER_CHECK(false) << name() << " saves tensors in its backward step";
  }
  void MarkNonDifferentiable(size_t) override {
    HAWSER_CHECK(false) << name() << " marks outputs in its backward step";
  }
  absl::StatusOr<std::vector<Tensor>> saved_tensors() const override {
    std::vector<Tensor> tensors;
    for (const SavedTensor& saved : saved_) {
      ASSIGN_OR_RETURN(Tensor tensor, saved.Unpack());
      tensors.push_back(std::move(tensor));
    }
    return tensors;
  }
  bool needs_input_gradient(size_t i) const override {
    return i < next_edges().size() && needs_gradient(i);
  }

 private:
  absl::Status CheckGradient(size_t i, const Tensor& gradient) const {
    if (!gradient.defined() || !needs_gradient(i)) return absl::OkStatus();
    const TensorKind& input = *inputs_[i];
    if (gradient.shape() == input.shape &&
        gradient.dtype() == input.options.dtype &&
        gradient.device() == input.options.device) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "Backward returned ", gradient.ToString(), " as the gradient of input ",
        i, ", of shape ", input.shape.ToString()));
  }

  const std::unique_ptr<Function> function_;
  std::vector<std::optional<TensorKind>> inputs_;
  std::vector<std::optional<TensorKind>> outputs_;
  std::deque<SavedTensor> saved_;
};

// Records the requests of the forward step.
class ForwardContext final : public FunctionContext {
 public:
  explicit ForwardContext(const std::vector<Edge>& edges) : edges_(edges) {}

  void SaveForBackward(std::vector<Tensor> tensors) override {
    saved_ = std::move(tensors);
  }
  void MarkNonDifferentiable(size_t i) override {
    if (i >= non_differentiable_.size()) non_differentiable_.resize(i + 1);
    non_differentiable_[i] = true;
  }
  absl::StatusOr<std::vector<Tensor>> saved_tensors() const override {
    return saved_;
  }
  bool needs_input_gradient(size_t i) const override {
    return i < edges_.size() && edges_[i];
  }

  bool differentiable(size_t i) const {
    return i >= non_differentiable_.size() || !non_differentiable_[i];
  }
  std::vector<Tensor> TakeSaved() { return std::move(saved_); }

 private:
  const std::vector<Edge>& edges_;
  std::vector<Tensor> saved_;
  std::vector<bool> non_differentiable_;
};

}  // namespace

absl::StatusOr<std::vector<Tensor>> Apply(std::unique_ptr<Function> function,
                                          std::vector<Tensor> inputs) {
  bool record = false;
  std::vector<Edge> edges(inputs.size());
  if (GradEnabled()) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      edges[i] = GradEdge(inputs[i]);
      record |= static_cast<bool>(edges[i]);
    }
  }
  ForwardContext context(edges);
  std::vector<Tensor> outputs;
  {
    NoGradGuard no_grad;
    ASSIGN_OR_RETURN(outputs, function->Forward(context, inputs));
  }
  std::vector<Tensor> saved = context.TakeSaved();
  for (Tensor& output : outputs) {
    for (const Tensor& input : inputs) {
      if (output.defined() && output.is_same(input)) output = output.Detach();
    }
  }
  if (!record) return outputs;
  auto node = std::make_shared<FunctionNode>(
      std::move(function), inputs, std::move(edges),
      static_cast<uint32_t>(outputs.size()));
  node->KeepSaved(outputs, std::move(saved));
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].defined() && context.differentiable(i) &&
        tensor::IsFloatingPoint(outputs[i].dtype())) {
      SetHistory(outputs[i], node, static_cast<uint32_t>(i));
    }
  }
  return outputs;
}

}  // namespace hawser::autograd
