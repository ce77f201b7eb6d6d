#include "autograd/ops/join.h"

#include <memory>
#include <string_view>
#include <utility>

#include "async/status_macros.h"
#include "autograd/grad_mode.h"
#include "autograd/internal/record.h"
#include "tensor/ops/join.h"
#include "tensor/recording_mode.h"
#include "tensor/shape.h"

namespace hawser::autograd {
namespace {

using internal::EdgesOf;

bool MustRecordAny(std::span<const Tensor> tensors) {
  if (!GradEnabled()) return false;
  for (const Tensor& t : tensors) {
    if (RequiresGrad(t)) return true;
  }
  return false;
}

class ConcatNode final : public Node {
 public:
  ConcatNode(std::span<const Tensor> tensors, int dim)
      : Node(EdgesOf(tensors)), dim_(dim) {
    for (const Tensor& t : tensors) sizes_.push_back(t.dim(dim));
  }

  std::string_view name() const override { return "ConcatBackward"; }

  absl::StatusOr<std::vector<Tensor>> Apply(
      std::vector<Tensor> grad_outputs) override {
    std::vector<Tensor> gradients(sizes_.size());
    int64_t start = 0;
    for (size_t i = 0; i < sizes_.size(); ++i) {
      if (needs_gradient(i)) {
        ASSIGN_OR_RETURN(gradients[i],
                         grad_outputs[0].Narrow(dim_, start, sizes_[i]));
      }
      start += sizes_[i];
    }
    return gradients;
  }

 private:
  const int dim_;
  std::vector<int64_t> sizes_;
};

class StackNode final : public Node {
 public:
  StackNode(std::span<const Tensor> tensors, int dim)
      : Node(EdgesOf(tensors)), dim_(dim) {}

  std::string_view name() const override { return "StackBackward"; }

  absl::StatusOr<std::vector<Tensor>> Apply(
      std::vector<Tensor> grad_outputs) override {
    std::vector<Tensor> gradients(next_edges().size());
    for (size_t i = 0; i < gradients.size(); ++i) {
      if (!needs_gradient(i)) continue;
      ASSIGN_OR_RETURN(gradients[i],
                       grad_outputs[0].Select(dim_, static_cast<int64_t>(i)));
    }
    return gradients;
  }

 private:
  const int dim_;
};

class SplitNode final : public Node {
 public:
  SplitNode(const Tensor& a, std::span<const Tensor> parts, int dim)
      : Node(EdgesOf({&a, 1}), static_cast<uint32_t>(parts.size())),
        dim_(dim),
        options_{a.dtype(), a.device()} {
    for (const Tensor& part : parts) part_shapes_.push_back(part.shape());
  }

  std::string_view name() const override { return "SplitBackward"; }

  absl::StatusOr<std::vector<Tensor>> Apply(
      std::vector<Tensor> grad_outputs) override {
    for (size_t i = 0; i < grad_outputs.size(); ++i) {
      if (!grad_outputs[i].defined()) {
        grad_outputs[i] = Tensor::Zeros(part_shapes_[i], options_);
      }
    }
    ASSIGN_OR_RETURN(Tensor joined, tensor::Concat(grad_outputs, dim_));
    return std::vector<Tensor>{std::move(joined)};
  }

 private:
  const int dim_;
  const tensor::TensorOptions options_;
  std::vector<tensor::Shape> part_shapes_;
};

}  // namespace

absl::StatusOr<Tensor> Concat(std::span<const Tensor> tensors, int64_t dim) {
  const tensor::RawOperationsScope raw;
  ASSIGN_OR_RETURN(Tensor out, tensor::Concat(tensors, dim));
  if (!MustRecordAny(tensors)) return out;
  for (const Tensor& t : tensors) {
    if (out.is_same(t)) out = out.Detach();
  }
  SetHistory(out, std::make_shared<ConcatNode>(tensors, static_cast<int>(dim)),
             0);
  return out;
}

absl::StatusOr<Tensor> Stack(std::span<const Tensor> tensors, int64_t dim) {
  const tensor::RawOperationsScope raw;
  ASSIGN_OR_RETURN(Tensor out, tensor::Stack(tensors, dim));
  if (!MustRecordAny(tensors)) return out;
  SetHistory(out, std::make_shared<StackNode>(tensors, static_cast<int>(dim)),
             0);
  return out;
}

absl::StatusOr<std::vector<Tensor>> Split(const Tensor& a,
                                          std::span<const int64_t> sizes,
                                          int64_t dim) {
  const tensor::RawOperationsScope raw;
  ASSIGN_OR_RETURN(std::vector<Tensor> parts, tensor::Split(a, sizes, dim));
  if (!internal::MustRecord(a)) return parts;
  auto node = std::make_shared<SplitNode>(a, parts, static_cast<int>(dim));
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].is_same(a)) parts[i] = parts[i].Detach();
    SetHistory(parts[i], node, static_cast<uint32_t>(i));
  }
  return parts;
}

}  // namespace hawser::autograd
