#include "autograd/ops/reduce.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "async/status_macros.h"
#include "autograd/internal/record.h"
#include "tensor/ops/elementwise.h"
#include "tensor/recording_mode.h"

namespace hawser::autograd {
namespace {

using internal::InputGradients;
using internal::Keep;
using internal::MustRecord;
using internal::Record;
using tensor::Shape;
using Inputs1 = std::array<const Tensor*, 1>;
using Kept = std::span<const Tensor>;

// `shape` with size 1 in each of `dims`, which the reduction has checked; empty
// `dims` stand for all.
Shape KeptShape(const Shape& shape, DimSpan dims) {
  std::vector<int64_t> sizes(shape.rank());
  for (int i = 0; i < shape.rank(); ++i) sizes[i] = dims.empty() ? 1 : shape[i];
  for (int64_t dim : dims) sizes[dim < 0 ? dim + shape.rank() : dim] = 1;
  return Shape(std::span<const int64_t>(sizes));
}

int64_t CountReduced(const Shape& shape, const Shape& kept_shape) {
  int64_t count = 1;
  for (int i = 0; i < shape.rank(); ++i) {
    if (kept_shape[i] != shape[i]) count *= shape[i];
  }
  return count;
}

// The gradient of a sum: the gradient of the result, repeated.
absl::StatusOr<Tensor> Repeat(const Tensor& dout, const Shape& kept_shape,
                              const Shape& shape) {
  ASSIGN_OR_RETURN(Tensor kept, dout.Reshape(kept_shape));
  return kept.Expand(shape);
}

// Divides `dout` evenly among the true elements of `is_extreme`, which are the
// extremes of the reduced dims.
absl::StatusOr<Tensor> ShareEvenly(const Tensor& is_extreme, const Tensor& dout,
                                   DimSpan dims) {
  ASSIGN_OR_RETURN(Tensor weight, is_extreme.To(dout.dtype()));
  ASSIGN_OR_RETURN(Tensor count, tensor::Sum(weight, dims, /*keepdim=*/true));
  ASSIGN_OR_RETURN(Tensor kept, dout.Reshape(count.shape()));
  ASSIGN_OR_RETURN(Tensor share, tensor::Div(kept, count));
  return tensor::Mul(weight, share);
}

Tensor RecordExtreme(std::string_view name, Tensor out, const Tensor& a,
                     DimSpan dims) {
  return Record(
      name, out, Inputs1{&a}, std::array{Keep::Input(a), Keep::Output(out)},
      [dims = std::vector<int64_t>(dims.begin(), dims.end())](
          const Tensor& dout, Kept kept,
          InputGradients& gradients) -> absl::Status {
        ASSIGN_OR_RETURN(Tensor extreme,
                         kept[1].Reshape(KeptShape(kept[0].shape(), dims)));
        ASSIGN_OR_RETURN(Tensor is_extreme, tensor::Eq(kept[0], extreme));
        ASSIGN_OR_RETURN(gradients[0], ShareEvenly(is_extreme, dout, dims));
        return absl::OkStatus();
      });
}

}  // namespace

absl::StatusOr<Tensor> Sum(const Tensor& a, DimSpan dims, bool keepdim) {
  const tensor::RawOperationsScope raw;
  ASSIGN_OR_RETURN(Tensor out, tensor::Sum(a, dims, keepdim));
  if (!MustRecord(a)) return out;
  return Record(
      "SumBackward", std::move(out), Inputs1{&a}, std::array<Keep, 0>{},
      [shape = a.shape(), kept_shape = KeptShape(a.shape(), dims)](
          const Tensor& dout, Kept, InputGradients& gradients) -> absl::Status {
        ASSIGN_OR_RETURN(gradients[0], Repeat(dout, kept_shape, shape));
        return absl::OkStatus();
      });
}

absl::StatusOr<Tensor> Mean(const Tensor& a, DimSpan dims, bool keepdim) {
  const tensor::RawOperationsScope raw;
  ASSIGN_OR_RETURN(Tensor out, tensor::Mean(a, dims, keepdim));
  if (!MustRecord(a)) return out;
  return Record(
      "MeanBackward", std::move(out), Inputs1{&a}, std::array<Keep, 0>{},
      [shape = a.shape(), kept_shape = KeptShape(a.shape(), dims)](
          const Tensor& dout, Kept, InputGradients& gradients) -> absl::Status {
        const double count =
            static_cast<double>(CountReduced(shape, kept_shape));
        ASSIGN_OR_RETURN(Tensor share, tensor::MulScalar(dout, 1 / count));
        ASSIGN_OR_RETURN(gradients[0], Repeat(share, kept_shape, shape));
        return absl::OkStatus();
      });
}

absl::StatusOr<Tensor> Max(const Tensor& a, DimSpan dims, bool keepdim) {
  const tensor::RawOperationsScope raw;
  ASSIGN_OR_RETURN(Tensor out, tensor::Max(a, dims, keepdim));
  if (!MustRecord(a)) return out;
  return RecordExtreme("MaxBackward", std::move(out), a, dims);
}

absl::StatusOr<Tensor> Min(const Tensor& a, DimSpan dims, bool keepdim) {
  const tensor::RawOperationsScope raw;
  ASSIGN_OR_RETURN(Tensor out, tensor::Min(a, dims, keepdim));
  if (!MustRecord(a)) return out;
  return RecordExtreme("MinBackward", std::move(out), a, dims);
}

absl::StatusOr<Tensor> SumTo(const Tensor& a, const Shape& shape) {
  const tensor::RawOperationsScope raw;
  ASSIGN_OR_RETURN(Tensor out, tensor::SumTo(a, shape));
  if (!MustRecord(a) || out.is_same(a)) return out;
  return Record(
      "SumToBackward", std::move(out), Inputs1{&a}, std::array<Keep, 0>{},
      [a_shape = a.shape()](const Tensor& dout, Kept,
                            InputGradients& gradients) -> absl::Status {
        ASSIGN_OR_RETURN(gradients[0], dout.Expand(a_shape));
        return absl::OkStatus();
      });
}

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// sign(x) |x|^(p-1) / norm^(p-1), and 0 where x is 0. The slope does not depend
// on the scale of x, so elements are first divided by the largest magnitude:
// their norm neither underflows nor overflows.
absl::StatusOr<Tensor> NormSlope(const Tensor& x, double p) {
  ASSIGN_OR_RETURN(Tensor largest, tensor::Norm(x, kInfinity));
  ASSIGN_OR_RETURN(Tensor scaled, tensor::Div(x, largest));
  ASSIGN_OR_RETURN(Tensor norm, tensor::Norm(scaled, p));
  ASSIGN_OR_RETURN(Tensor ratio, tensor::Div(scaled, norm));
  ASSIGN_OR_RETURN(Tensor sign, tensor::Sign(x));
  ASSIGN_OR_RETURN(Tensor magnitude, tensor::Abs(ratio));
  ASSIGN_OR_RETURN(Tensor power, tensor::PowScalar(magnitude, p - 1));
  ASSIGN_OR_RETURN(Tensor slope, tensor::Mul(power, sign));
  const Tensor zero = Tensor::Zeros({}, {x.dtype(), x.device()});
  ASSIGN_OR_RETURN(Tensor at_zero, tensor::Eq(x, zero));
  return tensor::Where(at_zero, zero, slope);
}

// sign(x) where |x| is the largest, in equal shares.
absl::StatusOr<Tensor> MaxNormGradient(const Tensor& x, const Tensor& dout) {
  ASSIGN_OR_RETURN(Tensor largest, tensor::Norm(x, kInfinity));
  ASSIGN_OR_RETURN(Tensor magnitude, tensor::Abs(x));
  ASSIGN_OR_RETURN(Tensor is_largest, tensor::Eq(magnitude, largest));
  ASSIGN_OR_RETURN(Tensor share, ShareEvenly(is_largest, dout, {}));
  ASSIGN_OR_RETURN(Tensor sign, tensor::Sign(x));
  return tensor::Mul(share, sign);
}

}  // namespace

absl::StatusOr<Tensor> Norm(const Tensor& a, double p) {
  const tensor::RawOperationsScope raw;
  ASSIGN_OR_RETURN(Tensor out, tensor::Norm(a, p));
  if (!MustRecord(a)) return out;
  return Record(
      "NormBackward", std::move(out), Inputs1{&a}, std::array{Keep::Input(a)},
      [p](const Tensor& dout, Kept kept,
          InputGradients& gradients) -> absl::Status {
        if (std::isinf(p)) {
          ASSIGN_OR_RETURN(gradients[0], MaxNormGradient(kept[0], dout));
          return absl::OkStatus();
        }
        ASSIGN_OR_RETURN(Tensor slope, NormSlope(kept[0], p));
        ASSIGN_OR_RETURN(gradients[0], tensor::Mul(slope, dout));
        return absl::OkStatus();
      });
}

}  // namespace hawser::autograd
