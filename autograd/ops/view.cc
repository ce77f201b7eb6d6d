#include "autograd/ops/view.h"

#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "async/status_macros.h"
#include "autograd/internal/record.h"
#include "tensor/ops/reduce.h"
#include "tensor/recording_mode.h"

namespace hawser::autograd {
namespace {

using internal::InputGradients;
using internal::Keep;
using internal::MustRecord;

// `gradient_step` is absl::StatusOr<Tensor>(const Tensor& dout).
template <class GradientStep>
Tensor RecordView(std::string_view name, Tensor out, const Tensor& a,
                  GradientStep gradient_step) {
  return internal::Record(name, std::move(out),
                          std::array<const Tensor*, 1>{&a},
                          std::array<Keep, 0>{},
                          [gradient_step = std::move(gradient_step)](
                              const Tensor& dout, std::span<const Tensor>,
                              InputGradients& gradients) -> absl::Status {
                            ASSIGN_OR_RETURN(gradients[0], gradient_step(dout));
                            return absl::OkStatus();
                          });
}

Tensor RecordReshape(std::string_view name, Tensor out, const Tensor& a) {
  return RecordView(name, std::move(out), a,
                    [a_shape = a.shape()](const Tensor& dout) {
                      return dout.Reshape(a_shape);
                    });
}

// Records a view of a part. Its gradient is zeros with `dout` in the part that
// `view` (a callable of absl::StatusOr<Tensor>(const Tensor&)) selects.
template <class View>
Tensor RecordPart(std::string_view name, Tensor out, const Tensor& a,
                  View view) {
  return RecordView(
      name, std::move(out), a,
      [a_shape = a.shape(),
       view](const Tensor& dout) -> absl::StatusOr<Tensor> {
        Tensor whole = Tensor::Zeros(a_shape, {dout.dtype(), dout.device()});
        ASSIGN_OR_RETURN(Tensor part, view(whole));
        RETURN_IF_ERROR(part.CopyFrom(dout));
        return whole;
      });
}

}  // namespace

absl::StatusOr<Tensor> Reshape(const Tensor& a, const Shape& shape) {
  const tensor::RawOperationsScope raw;
  ASSIGN_OR_RETURN(Tensor out, a.Reshape(shape));
  if (!MustRecord(a)) return out;
  return RecordReshape("ReshapeBackward", std::move(out), a);
}

absl::StatusOr<Tensor> Transpose(const Tensor& a, int dim0, int dim1) {
  const tensor::RawOperationsScope raw;
  ASSIGN_OR_RETURN(Tensor out, a.Transpose(dim0, dim1));
  if (!MustRecord(a)) return out;
  return RecordView(
      "TransposeBackward", std::move(out), a,
      [dim0, dim1](const Tensor& dout) { return dout.Transpose(dim0, dim1); });
}

absl::StatusOr<Tensor> Permute(const Tensor& a, std::span<const int> dims) {
  const tensor::RawOperationsScope raw;
  ASSIGN_OR_RETURN(Tensor out, a.Permute(dims));
  if (!MustRecord(a)) return out;
  std::vector<int> inverse(dims.size());
  for (size_t i = 0; i < dims.size(); ++i) {
    const int dim = dims[i] < 0 ? dims[i] + a.rank() : dims[i];
    inverse[dim] = static_cast<int>(i);
  }
  return RecordView("PermuteBackward", std::move(out), a,
                    [inverse = std::move(inverse)](const Tensor& dout) {
                      return dout.Permute(std::span<const int>(inverse));
                    });
}

absl::StatusOr<Tensor> Slice(const Tensor& a, int dim, int64_t start,
                             int64_t end, int64_t step) {
  const tensor::RawOperationsScope raw;
  const auto slice = [=](const Tensor& t) {
    return t.Slice(dim, start, end, step);
  };
  ASSIGN_OR_RETURN(Tensor out, slice(a));
  if (!MustRecord(a)) return out;
  return RecordPart("SliceBackward", std::move(out), a, slice);
}

absl::StatusOr<Tensor> Narrow(const Tensor& a, int dim, int64_t start,
                              int64_t length) {
  const tensor::RawOperationsScope raw;
  const auto narrow = [=](const Tensor& t) {
    return t.Narrow(dim, start, length);
  };
  ASSIGN_OR_RETURN(Tensor out, narrow(a));
  if (!MustRecord(a)) return out;
  return RecordPart("NarrowBackward", std::move(out), a, narrow);
}

absl::StatusOr<Tensor> Select(const Tensor& a, int dim, int64_t index) {
  const tensor::RawOperationsScope raw;
  const auto select = [=](const Tensor& t) { return t.Select(dim, index); };
  ASSIGN_OR_RETURN(Tensor out, select(a));
  if (!MustRecord(a)) return out;
  return RecordPart("SelectBackward", std::move(out), a, select);
}

absl::StatusOr<Tensor> Expand(const Tensor& a, const Shape& shape) {
  const tensor::RawOperationsScope raw;
  ASSIGN_OR_RETURN(Tensor out, a.Expand(shape));
  if (!MustRecord(a)) return out;
  return RecordView("ExpandBackward", std::move(out), a,
                    [a_shape = a.shape()](const Tensor& dout) {
                      return tensor::SumTo(dout, a_shape);
                    });
}

absl::StatusOr<Tensor> Squeeze(const Tensor& a) {
  const tensor::RawOperationsScope raw;
  ASSIGN_OR_RETURN(Tensor out, a.Squeeze());
  if (!MustRecord(a)) return out;
  return RecordReshape("SqueezeBackward", std::move(out), a);
}

absl::StatusOr<Tensor> Squeeze(const Tensor& a, int dim) {
  const tensor::RawOperationsScope raw;
  ASSIGN_OR_RETURN(Tensor out, a.Squeeze(dim));
  if (!MustRecord(a)) return out;
  return RecordReshape("SqueezeBackward", std::move(out), a);
}

absl::StatusOr<Tensor> Unsqueeze(const Tensor& a, int dim) {
  const tensor::RawOperationsScope raw;
  ASSIGN_OR_RETURN(Tensor out, a.Unsqueeze(dim));
  if (!MustRecord(a)) return out;
  return RecordReshape("UnsqueezeBackward", std::move(out), a);
}

}  // namespace hawser::autograd
