#include "autograd/ops/in_place.h"

#include <array>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "async/status_macros.h"
#include "autograd/internal/record.h"
#include "tensor/ops/elementwise.h"
#include "tensor/ops/in_place.h"
#include "tensor/ops/reduce.h"
#include "tensor/recording_mode.h"

namespace hawser::autograd {
namespace {

using internal::EdgesOf;
using internal::InputGradients;
using internal::Keep;
using internal::MustRecord;
using internal::RecordedNode;
using Kept = std::span<const Tensor>;

// Checks that an operation that is recorded may write to `a`.
absl::Status CheckWritable(absl::string_view name, const Tensor& a) {
  if (RequiresGrad(a) && IsLeaf(a)) {
    return absl::FailedPreconditionError(absl::StrCat(
        name, ": ", a.ToString(),
        " is a leaf that requires a gradient and cannot be written while "
        "recording; update it under a NoGradGuard"));
  }
  if (a.storage()->use_count() > 1) {
    return absl::FailedPreconditionError(absl::StrCat(
        name, ": ", a.ToString(),
        " shares its memory with another tensor (a view, or one that an "
        "operation keeps for its gradient), whose history would be wrong; use "
        "the operation that returns a new tensor"));
  }
  return absl::OkStatus();
}

// Adds a node after the current history of `a`, which was just written.
template <size_t kNumKept, class BackwardStep>
void Rebase(std::string_view name, const Tensor& a, std::vector<Edge> edges,
            const std::array<Keep, kNumKept>& kept, BackwardStep step) {
  SetHistory(a,
             std::make_shared<RecordedNode<kNumKept, BackwardStep>>(
                 name, std::move(edges), kept, std::move(step)),
             0);
}

}  // namespace

absl::Status AddInPlace(Tensor& a, const Tensor& b, double alpha) {
  const tensor::RawOperationsScope raw;
  if (!MustRecord(a, b)) return tensor::AddInPlace(a, b, alpha);
  RETURN_IF_ERROR(CheckWritable("AddInPlace", a));
  std::vector<Edge> edges = EdgesOf(std::array<const Tensor*, 2>{&a, &b});
  RETURN_IF_ERROR(tensor::AddInPlace(a, b, alpha));
  Rebase(
      "AddInPlaceBackward", a, std::move(edges), std::array<Keep, 0>{},
      [b_shape = b.shape(), alpha](const Tensor& dout, Kept,
                                   InputGradients& gradients) -> absl::Status {
        if (gradients.needed(0)) gradients[0] = dout;
        if (gradients.needed(1)) {
          ASSIGN_OR_RETURN(Tensor sum, tensor::SumTo(dout, b_shape));
          ASSIGN_OR_RETURN(gradients[1], tensor::MulScalar(sum, alpha));
        }
        return absl::OkStatus();
      });
  return absl::OkStatus();
}

absl::Status MulInPlace(Tensor& a, const Tensor& b) {
  const tensor::RawOperationsScope raw;
  if (!MustRecord(a, b)) return tensor::MulInPlace(a, b);
  RETURN_IF_ERROR(CheckWritable("MulInPlace", a));
  std::vector<Edge> edges = EdgesOf(std::array<const Tensor*, 2>{&a, &b});
  // Copies an operand that this operation itself overwrites.
  Tensor old_a;
  if (edges[1]) {
    ASSIGN_OR_RETURN(old_a, a.Clone());
  }
  Tensor factor = b;
  if (b.is_same(a)) {
    ASSIGN_OR_RETURN(factor, b.Clone());
  }
  RETURN_IF_ERROR(tensor::MulInPlace(a, factor));
  const Keep kept_factor = Keep::InputIf(static_cast<bool>(edges[0]), factor);
  Rebase("MulInPlaceBackward", a, std::move(edges),
         std::array{Keep::Input(old_a), kept_factor},
         [b_shape = b.shape()](const Tensor& dout, Kept kept,
                               InputGradients& gradients) -> absl::Status {
           if (gradients.needed(0)) {
             ASSIGN_OR_RETURN(gradients[0], tensor::Mul(dout, kept[1]));
           }
           if (gradients.needed(1)) {
             ASSIGN_OR_RETURN(Tensor db, tensor::Mul(dout, kept[0]));
             ASSIGN_OR_RETURN(gradients[1], tensor::SumTo(db, b_shape));
           }
           return absl::OkStatus();
         });
  return absl::OkStatus();
}

absl::Status MulScalarInPlace(Tensor& a, double value) {
  const tensor::RawOperationsScope raw;
  if (!MustRecord(a)) return tensor::MulScalarInPlace(a, value);
  RETURN_IF_ERROR(CheckWritable("MulScalarInPlace", a));
  std::vector<Edge> edges = EdgesOf(std::array<const Tensor*, 1>{&a});
  RETURN_IF_ERROR(tensor::MulScalarInPlace(a, value));
  Rebase("MulScalarInPlaceBackward", a, std::move(edges), std::array<Keep, 0>{},
         [value](const Tensor& dout, Kept,
                 InputGradients& gradients) -> absl::Status {
           ASSIGN_OR_RETURN(gradients[0], tensor::MulScalar(dout, value));
           return absl::OkStatus();
         });
  return absl::OkStatus();
}

absl::Status FillInPlace(Tensor& a, double value) {
  const tensor::RawOperationsScope raw;
  if (!MustRecord(a)) return tensor::FillInPlace(a, value);
  RETURN_IF_ERROR(CheckWritable("FillInPlace", a));
  std::vector<Edge> edges = EdgesOf(std::array<const Tensor*, 1>{&a});
  RETURN_IF_ERROR(tensor::FillInPlace(a, value));
  // The previous value is lost, so its gradient is zero.
  Rebase("FillInPlaceBackward", a, std::move(edges), std::array<Keep, 0>{},
         [](const Tensor&, Kept, InputGradients&) { return absl::OkStatus(); });
  return absl::OkStatus();
}

absl::Status CopyInto(Tensor& dst, const Tensor& src) {
  const tensor::RawOperationsScope raw;
  if (!MustRecord(dst, src)) return tensor::CopyInto(dst, src);
  RETURN_IF_ERROR(CheckWritable("CopyInto", dst));
  std::vector<Edge> edges = EdgesOf(std::array<const Tensor*, 1>{&src});
  RETURN_IF_ERROR(tensor::CopyInto(dst, src));
  Rebase(
      "CopyIntoBackward", dst, std::move(edges), std::array<Keep, 0>{},
      [src_shape = src.shape(), src_dtype = src.dtype()](
          const Tensor& dout, Kept, InputGradients& gradients) -> absl::Status {
        if (!gradients.needed(0)) return absl::OkStatus();
        ASSIGN_OR_RETURN(Tensor sum, tensor::SumTo(dout, src_shape));
        ASSIGN_OR_RETURN(gradients[0], sum.To(src_dtype));
        return absl::OkStatus();
      });
  return absl::OkStatus();
}

}  // namespace hawser::autograd
