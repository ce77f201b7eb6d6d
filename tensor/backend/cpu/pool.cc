#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/status_macros.h"
#include "tensor/backend/cpu/block_io.h"
#include "tensor/backend/cpu/cpu_backend.h"
#include "tensor/backend/cpu/ids.h"

namespace hawser::tensor::cpu {
namespace {

// Planes [h, w] of a dense [n, c, h, w], read as `C`s.
template <class C>
class PlaneReader {
 public:
  explicit PlaneReader(const Tensor& t)
      : tensor_(t), elements_(t.dim(2) * t.dim(3)) {
    if (!IsComputeType<C>(t.dtype())) {
      buffer_.resize(static_cast<size_t>(elements_));
    }
  }
  const C* Read(int64_t plane) {
    return ReadBlock(tensor_.dtype(), tensor_.raw_data(), plane * elements_, 1,
                     elements_, buffer_.data());
  }

 private:
  const Tensor& tensor_;
  const int64_t elements_;
  std::vector<C> buffer_;
};

// Planes written from `C`s: fill At(), then Finish().
template <class C>
class PlaneWriter {
 public:
  explicit PlaneWriter(Tensor& t) : tensor_(t), elements_(t.dim(2) * t.dim(3)) {
    if (!IsComputeType<C>(t.dtype())) {
      buffer_.resize(static_cast<size_t>(elements_));
    }
  }
  int64_t elements() const { return elements_; }
  C* At(int64_t plane) {
    return IsComputeType<C>(tensor_.dtype())
               ? static_cast<C*>(tensor_.raw_data()) + plane * elements_
               : buffer_.data();
  }
  void Finish(int64_t plane) {
    if (IsComputeType<C>(tensor_.dtype())) return;
    WriteBlock(tensor_.dtype(), tensor_.raw_data(), plane * elements_, 1,
               elements_, buffer_.data());
  }

 private:
  Tensor& tensor_;
  const int64_t elements_;
  std::vector<C> buffer_;
};

// The part of a window that lies in the input.
struct Window {
  int64_t y0, y1, x0, x1;
  // Elements of the window, with the padding that is within the padded input.
  int64_t padded_area;

  int64_t area() const { return (y1 - y0) * (x1 - x0); }
};

Window WindowAt(const Pool2dOptions& o, int64_t oy, int64_t ox, int64_t h,
                int64_t w) {
  const int64_t y = oy * o.stride[0] - o.padding[0];
  const int64_t x = ox * o.stride[1] - o.padding[1];
  const int64_t y_end = std::min(y + o.kernel[0], h + o.padding[0]);
  const int64_t x_end = std::min(x + o.kernel[1], w + o.padding[1]);
  return {std::max<int64_t>(y, 0), std::min(y_end, h), std::max<int64_t>(x, 0),
          std::min(x_end, w), (y_end - y) * (x_end - x)};
}

int64_t Divisor(const Pool2dOptions& options, const Window& window) {
  return options.count_include_pad ? window.padded_area : window.area();
}

// The first of the largest elements of a window, or its first NaN.
template <class C>
int64_t MaxIndex(const C* plane, int64_t width, const Window& window) {
  int64_t best = window.y0 * width + window.x0;
  C best_value = plane[best];
  for (int64_t y = window.y0; y < window.y1; ++y) {
    for (int64_t i = y * width + window.x0; i < y * width + window.x1; ++i) {
      if (plane[i] <= best_value) continue;
      if (best_value != best_value) return best;
      best = i;
      best_value = plane[i];
    }
  }
  return best;
}

}  // namespace

absl::Status CpuBackend::MaxPool2d(const Tensor& x,
                                   const Pool2dOptions& options, Tensor& values,
                                   Tensor& indices) {
  if (values.num_elements() == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Tensor dense, x.Contiguous());
  const int64_t h = x.dim(2), w = x.dim(3), oh = values.dim(2),
                ow = values.dim(3);
  int64_t* index = indices.data<int64_t>();
  VisitFloatComputeType(x.dtype(), [&]<class C>() {
    PlaneReader<C> in(dense);
    PlaneWriter<C> out(values);
    for (int64_t plane = 0; plane < x.dim(0) * x.dim(1); ++plane) {
      const C* const source = in.Read(plane);
      C* target = out.At(plane);
      for (int64_t oy = 0; oy < oh; ++oy) {
        for (int64_t ox = 0; ox < ow; ++ox) {
          *index = MaxIndex(source, w, WindowAt(options, oy, ox, h, w));
          *target++ = source[*index++];
        }
      }
      out.Finish(plane);
    }
  });
  return absl::OkStatus();
}

absl::Status CpuBackend::MaxPool2dGrad(const Tensor& dy, const Tensor& indices,
                                       Tensor& dx) {
  ASSIGN_OR_RETURN(const Tensor dense, dy.Contiguous());
  const int64_t in_elements = dx.dim(2) * dx.dim(3);
  ASSIGN_OR_RETURN(const std::vector<int64_t> ids,
                   ReadIds("MaxPool2dGrad", indices, in_elements));
  VisitFloatComputeType(dy.dtype(), [&]<class C>() {
    PlaneReader<C> in(dense);
    PlaneWriter<C> out(dx);
    const int64_t out_elements = dy.dim(2) * dy.dim(3);
    for (int64_t plane = 0; plane < dy.dim(0) * dy.dim(1); ++plane) {
      const C* const source = in.Read(plane);
      C* const target = out.At(plane);
      std::fill_n(target, in_elements, C{0});
      const int64_t* const id = ids.data() + plane * out_elements;
      for (int64_t i = 0; i < out_elements; ++i) target[id[i]] += source[i];
      out.Finish(plane);
    }
  });
  return absl::OkStatus();
}

absl::Status CpuBackend::AvgPool2d(const Tensor& x,
                                   const Pool2dOptions& options, Tensor& y) {
  if (y.num_elements() == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Tensor dense, x.Contiguous());
  const int64_t h = x.dim(2), w = x.dim(3);
  VisitFloatComputeType(x.dtype(), [&]<class C>() {
    PlaneReader<C> in(dense);
    PlaneWriter<C> out(y);
    for (int64_t plane = 0; plane < x.dim(0) * x.dim(1); ++plane) {
      const C* const source = in.Read(plane);
      C* target = out.At(plane);
      for (int64_t oy = 0; oy < y.dim(2); ++oy) {
        for (int64_t ox = 0; ox < y.dim(3); ++ox) {
          const Window window = WindowAt(options, oy, ox, h, w);
          C sum{0};
          for (int64_t i = window.y0; i < window.y1; ++i) {
            for (int64_t j = window.x0; j < window.x1; ++j) {
              sum += source[i * w + j];
            }
          }
          *target++ = sum / static_cast<C>(Divisor(options, window));
        }
      }
      out.Finish(plane);
    }
  });
  return absl::OkStatus();
}

absl::Status CpuBackend::AvgPool2dGrad(const Tensor& dy,
                                       const Pool2dOptions& options,
                                       Tensor& dx) {
  ASSIGN_OR_RETURN(const Tensor dense, dy.Contiguous());
  const int64_t h = dx.dim(2), w = dx.dim(3);
  VisitFloatComputeType(dy.dtype(), [&]<class C>() {
    PlaneReader<C> in(dense);
    PlaneWriter<C> out(dx);
    for (int64_t plane = 0; plane < dy.dim(0) * dy.dim(1); ++plane) {
      const C* source = in.Read(plane);
      C* const target = out.At(plane);
      std::fill_n(target, out.elements(), C{0});
      for (int64_t oy = 0; oy < dy.dim(2); ++oy) {
        for (int64_t ox = 0; ox < dy.dim(3); ++ox) {
          const Window window = WindowAt(options, oy, ox, h, w);
          const C share = *source++ / static_cast<C>(Divisor(options, window));
          for (int64_t i = window.y0; i < window.y1; ++i) {
            for (int64_t j = window.x0; j < window.x1; ++j) {
              target[i * w + j] += share;
            }
          }
        }
      }
      out.Finish(plane);
    }
  });
  return absl::OkStatus();
}

}  // namespace hawser::tensor::cpu
