// Convolutions as matrix products over unfolded patches ("im2col").
#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/status_macros.h"
#include "tensor/backend/cuda/cuda_backend.h"
#include "tensor/backend/cuda/cuda_status.h"
#include "tensor/backend/cuda/device_copy.h"
#include "tensor/backend/cuda/element.h"
#include "tensor/backend/cuda/gemm.h"
#include "tensor/backend/cuda/launch.h"
#include "tensor/backend/kernel_types.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::tensor::cuda {
namespace {

struct Geometry {
  int64_t n, c, h, w;              // Of the input.
  int64_t o, kh, kw;               // Of the weight.
  int64_t oh, ow;                  // Of the output.
  int64_t sh, sw, ph, pw, dh, dw;  // Stride, padding, dilation.
  int64_t groups;

  int64_t patch() const { return c / groups * kh * kw; }
  int64_t places() const { return oh * ow; }
};

Geometry GeometryOf(const Shape& x, const Shape& w, const Shape& y,
                    const Conv2dOptions& options) {
  return {x[0],
          x[1],
          x[2],
          x[3],
          w[0],
          w[2],
          w[3],
          y[2],
          y[3],
          options.stride[0],
          options.stride[1],
          options.padding[0],
          options.padding[1],
          options.dilation[0],
          options.dilation[1],
          options.groups};
}

// Number of images to unfold at once: as many as give 2^26 elements.
int64_t ImagesAtOnce(const Geometry& g) {
  constexpr int64_t kMaxElements = int64_t{1} << 26;
  const int64_t per_image = g.groups * g.patch() * g.places();
  return std::max<int64_t>(kMaxElements / std::max<int64_t>(per_image, 1), 1);
}

// Unfolds images: the element under each weight at each place of the output, 0
// outside of the image. Columns are [c, kh, kw, n, places], or [n, c, kh, kw,
// places] with `images_outside`. Only moves elements.
template <class Word>
__global__ void UnfoldKernel(Geometry g, bool images_outside, const Word* x,
                             Word* columns) {
  const int64_t rows = g.c * g.kh * g.kw;
  const int64_t places = g.oh * g.ow;
  for (int64_t i = FirstItem(); i < g.n * rows * places; i += ItemStep()) {
    const int64_t place = i % places, block = i / places;
    const int64_t row = images_outside ? block % rows : block / g.n;
    const int64_t image = images_outside ? block / rows : block % g.n;
    const int64_t channel = row / (g.kh * g.kw);
    const int64_t y = place / g.ow * g.sh - g.ph + row / g.kw % g.kh * g.dh;
    const int64_t xx = place % g.ow * g.sw - g.pw + row % g.kw * g.dw;
    const bool inside = y >= 0 && y < g.h && xx >= 0 && xx < g.w;
    columns[i] =
        inside ? x[((image * g.c + channel) * g.h + y) * g.w + xx] : Word{0};
  }
}

// The adjoint, from [n, c, kh, kw, places]. One thread per element of the input
// gathers the values unfolded from it, so that the result is deterministic.
template <class T>
__global__ void FoldKernel(Geometry g, const T* columns, T* dx) {
  const int64_t places = g.oh * g.ow;
  for (int64_t i = FirstItem(); i < g.n * g.c * g.h * g.w; i += ItemStep()) {
    const int64_t plane = i / (g.w * g.h);
    ComputeType<T> sum = 0;
    for (int64_t ky = 0; ky < g.kh; ++ky) {
      const int64_t y = i / g.w % g.h + g.ph - ky * g.dh;
      if (y < 0 || y % g.sh != 0 || y / g.sh >= g.oh) continue;
      for (int64_t kx = 0; kx < g.kw; ++kx) {
        const int64_t x = i % g.w + g.pw - kx * g.dw;
        if (x < 0 || x % g.sw != 0 || x / g.sw >= g.ow) continue;
        const int64_t row = (plane * g.kh + ky) * g.kw + kx;
        sum += Load(columns + row * places + y / g.sh * g.ow + x / g.sw);
      }
    }
    Store(dx + i, sum);
  }
}

// The images of `x`, contiguous; `g.n` is their number.
absl::StatusOr<Tensor> Unfold(const Geometry& g, const Tensor& x,
                              const Shape& shape, bool images_outside) {
  ASSIGN_OR_RETURN(Tensor columns,
                   Tensor::TryEmpty(shape, {x.dtype(), x.device()}));
  const int64_t count = columns.num_elements();
  if (count == 0) return columns;
  RETURN_IF_ERROR(VisitWord(x.dtype(), [&]<class Word>() {
    UnfoldKernel<Word><<<Blocks(count), kThreads, 0, kStream>>>(
        g, images_outside, In<Word>(x), Out<Word>(columns));
    return LaunchStatus("conv2d");
  }));
  return columns;
}

absl::StatusOr<Tensor> GroupedWeight(const Geometry& g, const Tensor& w) {
  return w.Reshape({g.groups, g.o / g.groups, g.patch()});
}

absl::StatusOr<Tensor> GroupedOutput(const Geometry& g, const Tensor& y) {
  return y.Reshape({y.dim(0), g.groups, g.o / g.groups, g.places()});
}

// Calls function(first image, their geometry) for runs of images that are
// unfolded at once.
template <class Function>
absl::Status ForEachRun(const Geometry& g, Function&& function) {
  const int64_t step = ImagesAtOnce(g);
  for (int64_t first = 0; first < g.n; first += step) {
    Geometry run = g;
    run.n = std::min(step, g.n - first);
    RETURN_IF_ERROR(function(first, run));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CudaBackend::Conv2d(const Tensor& x, const Tensor& w,
                                 const Tensor& bias,
                                 const Conv2dOptions& options, Tensor& y) {
  if (y.num_elements() == 0) return absl::OkStatus();
  const Geometry g = GeometryOf(x.shape(), w.shape(), y.shape(), options);
  ASSIGN_OR_RETURN(const Tensor dense, x.Contiguous());
  ASSIGN_OR_RETURN(const Tensor weight, GroupedWeight(g, w));
  ASSIGN_OR_RETURN(const Tensor grouped, GroupedOutput(g, y));
  // The product accumulates onto the bias, so that the sum is rounded once.
  if (bias.defined()) {
    ASSIGN_OR_RETURN(const Tensor channels, bias.Reshape({g.o, 1, 1}));
    RETURN_IF_ERROR(CopyOnDevice(y, channels));
  }
  const double beta = bias.defined() ? 1 : 0;
  const DeviceGuard guard(y.device());
  return ForEachRun(g, [&](int64_t first, const Geometry& run) -> absl::Status {
    ASSIGN_OR_RETURN(const Tensor images, dense.Narrow(0, first, run.n));
    ASSIGN_OR_RETURN(
        const Tensor columns,
        Unfold(run, images, {run.n, g.groups, g.patch(), g.places()}, true));
    ASSIGN_OR_RETURN(Tensor out, grouped.Narrow(0, first, run.n));
    return GemmBatches(weight, columns, beta, out);
  });
}

absl::Status CudaBackend::Conv2dInputGrad(const Tensor& dy, const Tensor& w,
                                          const Conv2dOptions& options,
                                          Tensor& dx) {
  if (dx.num_elements() == 0) return absl::OkStatus();
  const Geometry g = GeometryOf(dx.shape(), w.shape(), dy.shape(), options);
  ASSIGN_OR_RETURN(const Tensor weight, GroupedWeight(g, w));
  ASSIGN_OR_RETURN(const Tensor transposed, weight.Transpose(1, 2));
  ASSIGN_OR_RETURN(const Tensor grouped, GroupedOutput(g, dy));
  const DeviceGuard guard(dx.device());
  return ForEachRun(g, [&](int64_t first, const Geometry& run) -> absl::Status {
    ASSIGN_OR_RETURN(const Tensor part, grouped.Narrow(0, first, run.n));
    ASSIGN_OR_RETURN(Tensor columns,
                     Tensor::TryEmpty({run.n, g.groups, g.patch(), g.places()},
                                      {dx.dtype(), dx.device()}));
    RETURN_IF_ERROR(GemmBatches(transposed, part, /*beta=*/0, columns));
    ASSIGN_OR_RETURN(Tensor out, dx.Narrow(0, first, run.n));
    return VisitFloat(dx.dtype(), "conv2d input gradient", [&]<class T>() {
      FoldKernel<T><<<Blocks(out.num_elements()), kThreads, 0, kStream>>>(
          run, In<T>(columns), Out<T>(out));
      return LaunchStatus("conv2d input gradient");
    });
  });
}

absl::Status CudaBackend::Conv2dWeightGrad(const Tensor& dy, const Tensor& x,
                                           const Conv2dOptions& options,
                                           Tensor& dw) {
  if (dw.num_elements() == 0) return absl::OkStatus();
  if (dy.num_elements() == 0) return Fill(0, dw);
  const Geometry g = GeometryOf(x.shape(), dw.shape(), dy.shape(), options);
  ASSIGN_OR_RETURN(const Tensor dense, x.Contiguous());
  ASSIGN_OR_RETURN(const Tensor grouped, GroupedOutput(g, dy));
  ASSIGN_OR_RETURN(Tensor out, GroupedWeight(g, dw));
  const DeviceGuard guard(dw.device());
  // The places of all images of a run form one dim, so that sums over them are
  // not rounded to the dtype after each image.
  return ForEachRun(g, [&](int64_t first, const Geometry& run) -> absl::Status {
    ASSIGN_OR_RETURN(const Tensor images, dense.Narrow(0, first, run.n));
    const int64_t places = run.n * g.places();
    ASSIGN_OR_RETURN(const Tensor columns,
                     Unfold(run, images, {g.groups, g.patch(), places}, false));
    ASSIGN_OR_RETURN(const Tensor right, columns.Transpose(1, 2));
    ASSIGN_OR_RETURN(Tensor part, grouped.Narrow(0, first, run.n));
    ASSIGN_OR_RETURN(part, part.Permute({1, 2, 0, 3}));
    ASSIGN_OR_RETURN(const Tensor left,
                     part.Reshape({g.groups, g.o / g.groups, places}));
    return GemmBatches(left, right, first == 0 ? 0 : 1, out);
  });
}

}  // namespace hawser::tensor::cuda
