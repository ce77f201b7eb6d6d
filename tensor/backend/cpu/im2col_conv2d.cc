#include "tensor/backend/cpu/im2col_conv2d.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tensor/backend/cpu/eigen_gemm.h"
#include "tensor/backend/cpu/matrix_layout.h"

namespace hawser::tensor::cpu {
namespace {

// The patches of one group of one image: [c / groups * kh * kw, oh * ow].
struct Patches {
  explicit Patches(const Conv2dSizes& s)
      : rows(s.c / s.groups() * s.kh * s.kw),
        cols(s.oh * s.ow),
        data(static_cast<size_t>(rows * cols)) {}

  MatrixLayout layout() const { return {rows, cols, cols, 1}; }
  MatrixLayout transposed() const { return {cols, rows, 1, cols}; }

  int64_t rows;
  int64_t cols;
  std::vector<double> data;
};

// Calls visit(position in the patches, position in the group's image) for each
// element of the patches that is not padding.
template <class Visit>
void ForEachPatchElement(const Conv2dSizes& s, Visit&& visit) {
  const Conv2dOptions& o = s.options;
  int64_t row = 0;
  for (int64_t c = 0; c < s.c / s.groups(); ++c) {
    for (int64_t i = 0; i < s.kh; ++i) {
      for (int64_t j = 0; j < s.kw; ++j, ++row) {
        for (int64_t oy = 0; oy < s.oh; ++oy) {
          const int64_t y = oy * o.stride[0] - o.padding[0] + i * o.dilation[0];
          if (y < 0 || y >= s.h) continue;
          for (int64_t ox = 0; ox < s.ow; ++ox) {
            const int64_t x =
                ox * o.stride[1] - o.padding[1] + j * o.dilation[1];
            if (x < 0 || x >= s.w) continue;
            visit((row * s.oh + oy) * s.ow + ox, (c * s.h + y) * s.w + x);
          }
        }
      }
    }
  }
}

void Gather(const Conv2dSizes& s, const double* image, Patches& patches) {
  std::fill(patches.data.begin(), patches.data.end(), 0.0);
  ForEachPatchElement(s, [&](int64_t to, int64_t from) {
    patches.data[static_cast<size_t>(to)] = image[from];
  });
}

// Calls visit(x, weight, y offsets) for each group of each image.
template <class Visit>
void ForEachGroup(const Conv2dSizes& s, Visit&& visit) {
  const int64_t x_size = s.c / s.groups() * s.h * s.w;
  const int64_t y_size = s.o / s.groups() * s.oh * s.ow;
  const int64_t weight_size =
      s.o / s.groups() * (s.c / s.groups()) * s.kh * s.kw;
  for (int64_t n = 0; n < s.n; ++n) {
    for (int64_t g = 0; g < s.groups(); ++g) {
      const int64_t i = n * s.groups() + g;
      visit(i * x_size, g * weight_size, i * y_size);
    }
  }
}

}  // namespace

void Conv2dF64(const Conv2dSizes& s, const double* x, const double* weight,
               const double* bias, double* y) {
  Patches patches(s);
  const MatrixLayout filters = {s.o / s.groups(), patches.rows, patches.rows,
                                1};
  for (int64_t i = 0; i < s.n * s.o; ++i) {
    std::fill_n(y + i * patches.cols, patches.cols,
                bias != nullptr ? bias[i % s.o] : 0.0);
  }
  ForEachGroup(s, [&](int64_t x_at, int64_t weight_at, int64_t y_at) {
    Gather(s, x + x_at, patches);
    MultiplyF64(filters, weight + weight_at, patches.layout(),
                patches.data.data(), /*accumulate=*/true, y + y_at);
  });
}

void Conv2dInputGradF64(const Conv2dSizes& s, const double* dy,
                        const double* weight, double* dx) {
  Patches patches(s);
  const int64_t filters = s.o / s.groups();
  const MatrixLayout transposed = {patches.rows, filters, 1, patches.rows};
  const MatrixLayout gradient = {filters, patches.cols, patches.cols, 1};
  std::fill_n(dx, s.n * s.c * s.h * s.w, 0.0);
  ForEachGroup(s, [&](int64_t x_at, int64_t weight_at, int64_t y_at) {
    MultiplyF64(transposed.Canonical(), weight + weight_at,
                gradient.Canonical(), dy + y_at,
                /*accumulate=*/false, patches.data.data());
    ForEachPatchElement(s, [&](int64_t from, int64_t to) {
      dx[x_at + to] += patches.data[static_cast<size_t>(from)];
    });
  });
}

void Conv2dWeightGradF64(const Conv2dSizes& s, const double* dy,
                         const double* x, double* dweight) {
  Patches patches(s);
  const MatrixLayout gradient = {s.o / s.groups(), patches.cols, patches.cols,
                                 1};
  std::fill_n(dweight, s.o * patches.rows, 0.0);
  ForEachGroup(s, [&](int64_t x_at, int64_t weight_at, int64_t y_at) {
    Gather(s, x + x_at, patches);
    MultiplyF64(gradient.Canonical(), dy + y_at,
                patches.transposed().Canonical(), patches.data.data(),
                /*accumulate=*/true, dweight + weight_at);
  });
}

}  // namespace hawser::tensor::cpu
