// f64 convolution as a matrix product over gathered patches (im2col). Used to
// check gradients, and where oneDNN does not support the convolution.
#ifndef HAWSER_TENSOR_BACKEND_CPU_IM2COL_CONV2D_H_
#define HAWSER_TENSOR_BACKEND_CPU_IM2COL_CONV2D_H_

#include "tensor/backend/cpu/conv2d_sizes.h"

namespace hawser::tensor::cpu {

// All tensors are dense: x [n, c, h, w], weight [o, c / groups, kh, kw], bias
// [o] or null, y [n, o, oh, ow].
void Conv2dF64(const Conv2dSizes& sizes, const double* x, const double* weight,
               const double* bias, double* y);
void Conv2dInputGradF64(const Conv2dSizes& sizes, const double* dy,
                        const double* weight, double* dx);
void Conv2dWeightGradF64(const Conv2dSizes& sizes, const double* dy,
                         const double* x, double* dweight);

}  // namespace hawser::tensor::cpu

#endif  // HAWSER_TENSOR_BACKEND_CPU_IM2COL_CONV2D_H_
