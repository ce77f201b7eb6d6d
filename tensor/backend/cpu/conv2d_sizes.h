// Sizes of one convolution.
#ifndef HAWSER_TENSOR_BACKEND_CPU_CONV2D_SIZES_H_
#define HAWSER_TENSOR_BACKEND_CPU_CONV2D_SIZES_H_

#include <array>
#include <cstdint>

#include "tensor/backend/kernel_types.h"
#include "tensor/shape.h"

namespace hawser::tensor::cpu {

struct Conv2dSizes {
  int64_t n, c, h, w;  // input
  int64_t o, oh, ow;   // output
  int64_t kh, kw;      // kernel
  Conv2dOptions options;

  static Conv2dSizes Of(const Shape& x, const Shape& weight, const Shape& y,
                        const Conv2dOptions& options) {
    return {x[0], x[1], x[2],      x[3],      weight[0],
            y[2], y[3], weight[2], weight[3], options};
  }

  int64_t groups() const { return options.groups; }
  bool empty() const {
    return n == 0 || c == 0 || o == 0 || h == 0 || w == 0 || oh == 0 || ow == 0;
  }
};

}  // namespace hawser::tensor::cpu

#endif  // HAWSER_TENSOR_BACKEND_CPU_CONV2D_SIZES_H_
