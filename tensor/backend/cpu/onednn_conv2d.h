// Convolutions by oneDNN, in whatever layouts it finds best: tensors are
// reordered on the way in and out. Primitives are made once per shape and
// thread, and kept.
#ifndef HAWSER_TENSOR_BACKEND_CPU_ONEDNN_CONV2D_H_
#define HAWSER_TENSOR_BACKEND_CPU_ONEDNN_CONV2D_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "tensor/backend/cpu/conv2d_sizes.h"
#include "tensor/dtype.h"

namespace hawser::tensor::cpu {

enum class ConvPass : uint8_t {
  kForward,     // inputs x, weight; output y
  kInputGrad,   // inputs dy, weight; output dx
  kWeightGrad,  // inputs dy, x; output dweight
};

// Tensors are dense, of `dtype`, kF32 or kBF16, and not empty. `bias` [o] may
// be null, and is but for kForward. False, and nothing is done, where oneDNN
// does not do this on this machine; kResourceExhausted without scratch memory.
absl::StatusOr<bool> ConvolveOneDnn(ConvPass pass, DType dtype,
                                    const Conv2dSizes& sizes,
                                    const void* input0, const void* input1,
                                    const void* bias, void* output);

}  // namespace hawser::tensor::cpu

#endif  // HAWSER_TENSOR_BACKEND_CPU_ONEDNN_CONV2D_H_
