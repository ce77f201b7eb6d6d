#include <cstdint>

#include "absl/status/status.h"
#include "async/status_macros.h"
#include "tensor/backend/cuda/cuda_backend.h"
#include "tensor/backend/cuda/cuda_status.h"
#include "tensor/backend/cuda/element.h"
#include "tensor/backend/cuda/ids.h"
#include "tensor/backend/cuda/launch.h"
#include "tensor/backend/kernel_types.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::tensor::cuda {
namespace {

struct Windows {
  int64_t h, w, oh, ow;            // Input and output planes.
  int64_t kh, kw, sh, sw, ph, pw;  // Kernel, stride, padding.
  bool count_padding;

  // First input row of output row `oy`, before clipping to the plane.
  __device__ int64_t top(int64_t oy) const { return oy * sh - ph; }
  __device__ int64_t left(int64_t ox) const { return ox * sw - pw; }

  // Divisor of the average at (oy, ox).
  __device__ int64_t divisor(int64_t oy, int64_t ox) const {
    if (count_padding) return kh * kw;
    const int64_t y0 = max(top(oy), int64_t{0}), y1 = min(top(oy) + kh, h);
    const int64_t x0 = max(left(ox), int64_t{0}), x1 = min(left(ox) + kw, w);
    return (y1 - y0) * (x1 - x0);
  }
};

Windows WindowsOf(const Shape& x, const Shape& y,
                  const Pool2dOptions& options) {
  return {x[2],
          x[3],
          y[2],
          y[3],
          options.kernel[0],
          options.kernel[1],
          options.stride[0],
          options.stride[1],
          options.padding[0],
          options.padding[1],
          options.count_include_pad};
}

template <class T>
__global__ void MaxPoolKernel(Windows g, int64_t count, const T* x, T* values,
                              int64_t* indices) {
  using C = ComputeType<T>;
  for (int64_t i = FirstItem(); i < count; i += ItemStep()) {
    const int64_t ox = i % g.ow, oy = i / g.ow % g.oh;
    const T* const plane = x + i / (g.ow * g.oh) * g.h * g.w;
    int64_t best = -1;
    C best_value = 0;
    for (int64_t y = max(g.top(oy), int64_t{0}); y < min(g.top(oy) + g.kh, g.h);
         ++y) {
      for (int64_t xx = max(g.left(ox), int64_t{0});
           xx < min(g.left(ox) + g.kw, g.w); ++xx) {
        const C value = Load(plane + y * g.w + xx);
        if (best < 0 || value > best_value ||
            (value != value && best_value == best_value)) {
          best = y * g.w + xx;
          best_value = value;
        }
      }
    }
    Store(values + i, best_value);
    indices[i] = best;
  }
}

// Each output adds its gradient to the input that it came from; windows may
// overlap.
template <class T>
__global__ void MaxPoolGradKernel(int64_t count, int64_t in_plane,
                                  int64_t out_plane, const T* dy,
                                  const int64_t* indices, ComputeType<T>* dx) {
  for (int64_t i = FirstItem(); i < count; i += ItemStep()) {
    AtomicAdd(dx + i / out_plane * in_plane + indices[i], Load(dy + i));
  }
}

template <class T>
__global__ void AvgPoolKernel(Windows g, int64_t count, const T* x, T* y) {
  for (int64_t i = FirstItem(); i < count; i += ItemStep()) {
    const int64_t ox = i % g.ow, oy = i / g.ow % g.oh;
    const T* const plane = x + i / (g.ow * g.oh) * g.h * g.w;
    ComputeType<T> sum = 0;
    for (int64_t yy = max(g.top(oy), int64_t{0});
         yy < min(g.top(oy) + g.kh, g.h); ++yy) {
      for (int64_t xx = max(g.left(ox), int64_t{0});
           xx < min(g.left(ox) + g.kw, g.w); ++xx) {
        sum += Load(plane + yy * g.w + xx);
      }
    }
    Store(y + i, sum / static_cast<ComputeType<T>>(g.divisor(oy, ox)));
  }
}

template <class T>
__global__ void AvgPoolGradKernel(Windows g, int64_t count, const T* dy,
                                  T* dx) {
  for (int64_t i = FirstItem(); i < count; i += ItemStep()) {
    const int64_t ix = i % g.w, iy = i / g.w % g.h;
    const T* const plane = dy + i / (g.w * g.h) * g.oh * g.ow;
    ComputeType<T> sum = 0;
    for (int64_t ky = 0; ky < g.kh; ++ky) {
      const int64_t y = iy + g.ph - ky;
      if (y < 0 || y % g.sh != 0 || y / g.sh >= g.oh) continue;
      for (int64_t kx = 0; kx < g.kw; ++kx) {
        const int64_t x = ix + g.pw - kx;
        if (x < 0 || x % g.sw != 0 || x / g.sw >= g.ow) continue;
        const int64_t oy = y / g.sh, ox = x / g.sw;
        sum += Load(plane + oy * g.ow + ox) /
               static_cast<ComputeType<T>>(g.divisor(oy, ox));
      }
    }
    Store(dx + i, sum);
  }
}

}  // namespace

absl::Status CudaBackend::MaxPool2d(const Tensor& x,
                                    const Pool2dOptions& options,
                                    Tensor& values, Tensor& indices) {
  const int64_t count = values.num_elements();
  if (count == 0) return absl::OkStatus();
  const DeviceGuard guard(values.device());
  ASSIGN_OR_RETURN(const Tensor dense, x.Contiguous());
  const Windows windows = WindowsOf(x.shape(), values.shape(), options);
  return VisitFloat(x.dtype(), "MaxPool2d", [&]<class T>() {
    MaxPoolKernel<T><<<Blocks(count), kThreads, 0, kStream>>>(
        windows, count, In<T>(dense), Out<T>(values), Out<int64_t>(indices));
    return LaunchStatus("MaxPool2d");
  });
}

absl::Status CudaBackend::MaxPool2dGrad(const Tensor& dy, const Tensor& indices,
                                        Tensor& dx) {
  const int64_t in_plane = dx.dim(2) * dx.dim(3);
  ASSIGN_OR_RETURN(const Tensor places,
                   CheckedIds("MaxPool2dGrad", indices, in_plane));
  ASSIGN_OR_RETURN(const Tensor dense, dy.Contiguous());
  Tensor sums = dx;
  if (SumDType(dx.dtype()) != dx.dtype()) {
    ASSIGN_OR_RETURN(sums, Tensor::TryEmpty(dx.shape(), {SumDType(dx.dtype()),
                                                         dx.device()}));
  }
  RETURN_IF_ERROR(Fill(0, sums));
  const int64_t count = dy.num_elements();
  const DeviceGuard guard(dx.device());
  const auto add = [&]<class T>() {
    if (count == 0) return absl::OkStatus();
    MaxPoolGradKernel<T><<<Blocks(count), kThreads, 0, kStream>>>(
        count, in_plane, dy.dim(2) * dy.dim(3), In<T>(dense),
        In<int64_t>(places), Out<ComputeType<T>>(sums));
    return LaunchStatus("MaxPool2dGrad");
  };
  RETURN_IF_ERROR(VisitFloat(dx.dtype(), "MaxPool2dGrad", add));
  return sums.dtype() == dx.dtype() ? absl::OkStatus() : dx.CopyFrom(sums);
}

absl::Status CudaBackend::AvgPool2d(const Tensor& x,
                                    const Pool2dOptions& options, Tensor& y) {
  const int64_t count = y.num_elements();
  if (count == 0) return absl::OkStatus();
  const DeviceGuard guard(y.device());
  ASSIGN_OR_RETURN(const Tensor dense, x.Contiguous());
  const Windows windows = WindowsOf(x.shape(), y.shape(), options);
  return VisitFloat(x.dtype(), "AvgPool2d", [&]<class T>() {
    AvgPoolKernel<T><<<Blocks(count), kThreads, 0, kStream>>>(
        windows, count, In<T>(dense), Out<T>(y));
    return LaunchStatus("AvgPool2d");
  });
}

absl::Status CudaBackend::AvgPool2dGrad(const Tensor& dy,
                                        const Pool2dOptions& options,
                                        Tensor& dx) {
  const int64_t count = dx.num_elements();
  if (count == 0) return absl::OkStatus();
  const DeviceGuard guard(dx.device());
  ASSIGN_OR_RETURN(const Tensor dense, dy.Contiguous());
  const Windows windows = WindowsOf(dx.shape(), dy.shape(), options);
  return VisitFloat(dx.dtype(), "AvgPool2dGrad", [&]<class T>() {
    AvgPoolGradKernel<T><<<Blocks(count), kThreads, 0, kStream>>>(
        windows, count, In<T>(dense), Out<T>(dx));
    return LaunchStatus("AvgPool2dGrad");
  });
}

}  // namespace hawser::tensor::cuda
